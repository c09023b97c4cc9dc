// codec - what a decoder says about the bytes it was shown
// SPDX-License-Identifier: BSD-3-Clause
#ifndef HG_BASE_CODEC_H
#define HG_BASE_CODEC_H

/* "Not yet" is no error: a decoder that is shown a prefix answers HG_MORE and changes nothing. */
enum hg_codec {
    HG_MORE,
    HG_OK,
    HG_BAD,
};

#endif
