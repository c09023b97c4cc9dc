// dom - the few ways in which this page makes and changes elements
// SPDX-License-Identifier: BSD-3-Clause
//
// Names of keys and tenants come from clients: they only ever become text nodes, never markup.

export const byId = id => document.getElementById(id);

/* make('p', 'muted', 'text') or make('p', {className: …, title: …}, child, …). */
export function make(tag, properties, ...children) {
    const node = document.createElement(tag);
    if (typeof properties === 'string') {
        node.className = properties;
    } else if (properties) {
        for (const [name, value] of Object.entries(properties)) {
            if (name in node) {
                node[name] = value;
            } else {
                node.setAttribute(name, value);
            }
        }
    }
    node.append(...children.filter(child => child !== null && child !== undefined));
    return node;
}

/* Each of these touches the document only if something has changed: with a hundred rows a second
   that is what keeps the page smooth, selections alive, and screen readers quiet. */
export function setText(node, text) {
    if (node.shownText !== text) {
        node.shownText = text;
        node.textContent = text;
    }
}

export function setTitle(node, text) {
    if (node.title !== text) {
        node.title = text;
    }
}

export function setClass(node, name) {
    if (node.className !== name) {
        node.className = name;
    }
}

export function setHidden(node, hidden) {
    if (node.hidden !== hidden) {
        node.hidden = hidden;
    }
}

export function setStyle(node, property, value) {
    if (node.style[property] !== value) {
        node.style[property] = value;
    }
}

/* A word with a sign before it, so that colour is never the only one: level is ok, warn, bad, or
   calm for what is neither. */
const SIGNS = {ok: '✓', warn: '▲', bad: '✕', calm: '○'};

export function setTag(node, level, text) {
    setClass(node, 'tag ' + level);
    setText(node, SIGNS[level] + ' ' + text);
}
