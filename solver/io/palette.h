// palette.h - the colours of ops in every picture.
//
// One hue a kind, light for a device's first stage and deep for its later ones, chosen so that kinds stay
// apart under protanopia, deuteranopia and tritanopia, on white and on dark pages. `ink` reads on `fill`.
#ifndef ZB_PALETTE_H
#define ZB_PALETTE_H

struct zb_paint {
  const char *name; // of the CSS class or variable
  const char *fill, *ink;
};

// [kind][later stage of its device]
extern const struct zb_paint zb_palette[4][2];
extern const char *const zb_kind_help[4]; // "forward", "backward for the input", ..

#endif
