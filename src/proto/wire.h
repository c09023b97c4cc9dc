// wire - the numbers of the memcached binary protocol's header
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_PROTO_WIRE_H
#define HG_PROTO_WIRE_H

#define HG_FRAME_HEADER_BYTES 24
#define HG_KEY_MAX_BYTES      250

#define HG_MAGIC_REQUEST     0x80
#define HG_MAGIC_REQUEST_ALT 0x08 // with framing extras
#define HG_MAGIC_REPLY       0x81
#define HG_MAGIC_REPLY_ALT   0x18 // with framing extras

#define HG_DATATYPE_RAW  0x00
#define HG_DATATYPE_JSON 0x01

#endif
