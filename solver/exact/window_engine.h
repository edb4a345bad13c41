// window_engine.h - the exact engine for one stage a device: bounds, optima and their proofs.
#ifndef ZB_WINDOW_ENGINE_H
#define ZB_WINDOW_ENGINE_H

#include "solver/model/engine.h"

extern const struct zb_engine zb_engine_window;

#endif
