// palette.c - blue, orange, green and yellow.
#include "solver/io/palette.h"

#include "solver/model/schedule.h"

const struct zb_paint zb_palette[4][2] = {
    [ZB_F] = {{"f0", "#8ec5ff", "#10151c"}, {"f1", "#2b62b3", "#ffffff"}},
    [ZB_B] = {{"b0", "#ffb84d", "#10151c"}, {"b1", "#a85400", "#ffffff"}},
    [ZB_W] = {{"w0", "#3fae8a", "#10151c"}, {"w1", "#0b6b4c", "#ffffff"}},
    [ZB_BW] = {{"x0", "#f4e58c", "#10151c"}, {"x1", "#b89f1e", "#10151c"}},
};

const char *const zb_kind_help[4] = {
    [ZB_F] = "forward",
    [ZB_B] = "backward for the input",
    [ZB_W] = "backward for the weights",
    [ZB_BW] = "both backwards in one",
};
