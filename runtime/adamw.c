// adamw.c - the norm, the verdict, the constants of a step.
#include "runtime/adamw.h"

#include <math.h>

const char *const zb_verdict_word[3] = {"whole", "clipped", "skipped"};

struct zb_judgement zb_adamw_judge(const double *partial, int units, double clip) {
  double sum = 0;
  for (int u = 0; u < units; u++)
    if (!(partial[u] < 0)) sum += partial[u];
  struct zb_judgement judgement = {ZB_STEP_WHOLE, sqrt(sum), 1};
  if (!isfinite(sum)) {
    judgement.verdict = ZB_STEP_SKIPPED;
  } else if (clip > 0 && judgement.norm > clip) {
    judgement.verdict = ZB_STEP_CLIPPED;
    judgement.scale = clip / judgement.norm;
  }
  return judgement;
}

struct zb_adamw_step zb_adamw_step(const struct zb_adamw *adamw, int64_t number, double scale) {
  return (struct zb_adamw_step){
      .rate = (zb_real)adamw->rate,
      .beta1 = (zb_real)adamw->beta1,
      .beta2 = (zb_real)adamw->beta2,
      .epsilon = (zb_real)adamw->epsilon,
      .shrink = (zb_real)(1 - adamw->rate * adamw->decay),
      .correct1 = (zb_real)(1 / (1 - pow(adamw->beta1, (double)number))),
      .correct2 = (zb_real)(1 / (1 - pow(adamw->beta2, (double)number))),
      .scale = (zb_real)scale,
  };
}
