// rules.h - what the window engine does beyond what it must, each with a switch.
//
// Any of them can be left out (zb_problem.rules_off): the optimum stays, only the time to find and prove it
// changes. That is how tests show that no rule cuts off a schedule.
#ifndef ZB_RULES_H
#define ZB_RULES_H

#define ZB_RULE_TABLE(X)                                                                                     \
  X(ZB_RULE_LAG, "lag")             /* the round trip between a microbatch's F and B on a device */          \
  X(ZB_RULE_DOMINANCE, "dominance") /* no BW where B, then W can take its place */                           \
  X(ZB_RULE_HINT, "hint")           /* the root bound's bisection starts at the closed form */               \
  X(ZB_RULE_PROBE, "probe")         /* extreme values of order variables are tried before a split */         \
  X(ZB_RULE_DIVE, "dive")           /* orders from windows, one device after another */                      \
  X(ZB_RULE_CLIMB, "climb")         /* trees at the bound itself */                                          \
  X(ZB_RULE_NEIGHBOUR, "neighbour") /* small trees around the best orders */                                 \
  X(ZB_RULE_FRONT, "front")         /* layers of partial schedules, those that none beats */                 \
  X(ZB_RULE_FLOW, "flow")           /* the same by orders of F and B, W fluid or where they fit */

enum zb_rule {
#define X(name, word) name,
  ZB_RULE_TABLE(X)
#undef X
      ZB_RULE_COUNT
};

#define ZB_RULE_BIT(rule) (1u << (rule))

#endif
