/* zbcheck: what its parts share.
 *
 * zbcheck stands alone: the C library and the zbcheck_*.c beside it, no header and no line of the solver, so
 * that a mistake in the solver cannot hide behind the same mistake here. There is no floating point in it.
 *
 *   zbcheck.c            the command line, the order of the checks, the verdict
 *   zbcheck_json.c       text -> a tree of values that know where they stand; exact decimals
 *   zbcheck_profile.c    the embedded profile -> times in ns and memory in bytes, for each stage and device
 *   zbcheck_schedule.c   the schedule -> a list of ops a device, every op exactly once and where it belongs
 *   zbcheck_timeline.c   orders -> start times, memory, costs; each compared with what the file says
 *   zbcheck_bound.c      the closed-form lower bound, and the way from a bound to its proof
 *   zbcheck_window.c     window propagation over device lattices: can any schedule cost at most S?
 *                        (zbcheck_window.h: its parts, one device at a time)
 *   zbcheck_front.c      what that leaves open: a search over all devices at once
 *   zbcheck_fluid.c      the same with W poured
 *   zbcheck_proof.c      the proof tree: every leaf must be refuted by propagation
 *   zbcheck_sha256.c     the digest that ties a proof file to its schedule
 *
 * A function that can fail returns false after it has filled run->finding; callers hand the false on. All
 * memory but a few growing tables comes from one pool, released at the end. */
#ifndef ZBCHECK_H
#define ZBCHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ZC_MOST ((int64_t)1 << 53) /* the largest integer in a file: any JSON reader has it exactly */
#define ZC_NO_LIMIT INT64_MAX

#if defined(__GNUC__)
#define ZC_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define ZC_PRINTF(text, first)
#endif

/* ---- verdicts and memory (zbcheck.c) ---- */

enum zc_verdict { ZC_HOLDS, ZC_NOT_REDONE, ZC_WRONG, ZC_BAD_INPUT, ZC_FAILED };

struct zc_finding {
  enum zc_verdict verdict;
  char text[640];
};

struct zc_block;

/* What every part is handed: where it reports and where it takes memory. */
struct zc_run {
  struct zc_finding finding;
  struct zc_block *blocks;
  bool verbose;
};

/* Records a finding, and returns false so that `return zc_stop(..)` reads well. */
bool zc_stop(struct zc_run *run, enum zc_verdict verdict, const char *format, ...) ZC_PRINTF(3, 4);

/* count zeroed elements that live until the run ends. NULL, with a finding, where there is no memory. */
void *zc_alloc(struct zc_run *run, size_t count, size_t size);

/* Makes *table hold at least `need` elements; *room is how many it holds now. The caller frees it. */
bool zc_grow(struct zc_run *run, void **table, size_t *room, size_t need, size_t size);

/* One line on stderr under -v. */
void zc_note(const struct zc_run *run, const char *format, ...) ZC_PRINTF(2, 3);

/* ---- JSON (zbcheck_json.c) ---- */

enum zc_type { ZC_NULL = 1, ZC_BOOL = 2, ZC_NUMBER = 4, ZC_STRING = 8, ZC_ARRAY = 16, ZC_OBJECT = 32 };

/* One value. `text` is a number's literal or a string's decoded bytes (0-terminated, but `length` counts). */
struct zc_node {
  enum zc_type type;
  uint32_t at;     /* byte in the source where the value begins */
  uint32_t key_at; /* and where its key does, in an object */
  uint32_t length; /* bytes of text */
  uint32_t count;  /* members or elements */
  const char *text;
  const char *key; /* decoded; NULL outside objects */
  struct zc_node *first, *next;
};

struct zc_document {
  const char *path;
  const char *source;
  size_t length;
  const struct zc_node *root;
};

/* Reads all of a file. *missing (may be NULL) tells a file that is not there from one that cannot be read. */
bool zc_read_file(struct zc_run *run, const char *path, const char **bytes, size_t *length, bool *missing);

/* Parses by the grammar of RFC 8259. `path` is only named in messages. */
bool zc_parse(struct zc_run *run, const char *path, const char *bytes, size_t length,
              struct zc_document *document);

/* Bad input at a node: `path:line:column: ` and the rest. Returns false. */
bool zc_bad(struct zc_run *run, const struct zc_document *document, const struct zc_node *node,
            const char *format, ...) ZC_PRINTF(4, 5);

/* A key that an object may have: what its value may be, whether it must be there, and where to put it. */
struct zc_field {
  const char *key;
  unsigned types;
  bool required;
  const struct zc_node **value;
};

/* Reads an object against its table. A key that is unknown, repeated or missing, or a value of another type,
 * is bad input; what is left out is set to NULL. `where` names the object in messages ("" for the root). */
bool zc_fields(struct zc_run *run, const struct zc_document *document, const struct zc_node *object,
               const char *where, const struct zc_field *fields, size_t count);

bool zc_text_is(const struct zc_node *node, const char *text);

/* How much of a literal a message shows, for "%.*s". */
int zc_shown(const struct zc_node *number);

/* The literal times `unit`, exactly. NULL, or why not, in words that follow the literal; `base` names what
 * has to come out whole. At most 15 significant digits; a plain integer may have more, since files hold
 * integers up to 2^53. */
const char *zc_exact(const struct zc_node *number, int64_t unit, const char *base, int64_t *value);

/* An integer in [low, high], or bad input that names `where`. */
bool zc_integer(struct zc_run *run, const struct zc_document *document, const struct zc_node *node,
                const char *where, int64_t low, int64_t high, int64_t *value);

/* ---- profile (zbcheck_profile.c) ---- */

/* Times in ns, memory in bytes. Stage s holds index s; boundary s lies between stages s and s+1. */
struct zc_profile {
  int32_t devices, chunks, stages, microbatches;
  int32_t *device_of;                /* a stage */
  int32_t *stages_of;                /* a device: its stages, ascending, `chunks` of them each */
  int64_t *f, *b, *w, *bw;           /* a stage */
  int64_t *forward, *backward;       /* a boundary; 0 where both stages share a device */
  int64_t *keep_f, *keep_b, *keep_w; /* a stage: what each pass adds to memory; sum 0 */
  int64_t *limit, *standing;         /* a device: ZC_NO_LIMIT, and what is there before the first op */
};

bool zc_read_profile(struct zc_run *run, const struct zc_document *document, const struct zc_node *node,
                     struct zc_profile *profile);

/* The least any order can need on a device. One microbatch at a time, each backward fused, reaches it; less
 * is impossible, since a microbatch has all its forwards on a device behind it before its first backward
 * there. */
int64_t zc_least_peak(const struct zc_profile *profile, int32_t device);

/* ---- schedule (zbcheck_schedule.c) ---- */

enum zc_kind { ZC_F, ZC_B, ZC_W, ZC_BW };
enum zc_objective { ZC_SPAN, ZC_MAKESPAN, ZC_PERIOD };
enum zc_status { ZC_OPTIMAL, ZC_FEASIBLE, ZC_INFEASIBLE, ZC_UNKNOWN };

extern const char *const zc_kind_names[];
extern const char *const zc_objective_names[];
extern const char *const zc_status_names[];

struct zc_op {
  int32_t stage, microbatch, device;
  enum zc_kind kind;
  int64_t said_start;
  int64_t time;
  int32_t before[2]; /* ops of other passes that must have ended, -1 for none */
  int64_t delay[2];  /* and how long after that this one may start */
};

/* What the file says, as read. Op numbers run through the devices in order. */
struct zc_schedule {
  enum zc_objective objective;
  enum zc_status status;
  bool has_bound;
  int64_t cost, bound, span, period, makespan;
  const struct zc_node *gap, *bubble_rate;
  const struct zc_node *proof, *relaxation, *reason; /* NULL where left out */
  int32_t op_count;
  struct zc_op *ops;
  int32_t *first;              /* a device's first op number; [devices] is op_count */
  int64_t *peak, *busy, *idle; /* a device, as said */
};

bool zc_read_schedule(struct zc_run *run, const struct zc_document *document, struct zc_profile *profile,
                      struct zc_schedule *schedule);

/* An op's name, "3B12", in a buffer of at least 32 bytes. */
const char *zc_op_name(const struct zc_op *op, char name[32]);

/* ---- timeline (zbcheck_timeline.c) ---- */

/* Recomputes everything that follows from the orders and compares it with the file. */
bool zc_check_timeline(struct zc_run *run, const struct zc_document *document,
                       const struct zc_profile *profile, const struct zc_schedule *schedule);

/* ---- bound (zbcheck_bound.c, zbcheck_proof.c, zbcheck_window.c, zbcheck_front.c, zbcheck_fluid.c,
 * zbcheck_sha256.c) ---- */

/* A lower bound on every schedule's cost for any placement, from what work, fill and drain force. */
int64_t zc_closed_form(const struct zc_profile *profile, enum zc_objective objective);

/* Redoes the proof of the file's bound. proof_path (or NULL) is where the command line says the proof tree
 * lies. */
bool zc_check_bound(struct zc_run *run, const struct zc_document *document, const struct zc_profile *profile,
                    const struct zc_schedule *schedule, const char *proof_path);

enum { ZC_MOST_CHUNKS = 12 }; /* with more stages a device, only the closed form is redone */

/* What a leaf is refuted with: propagation, that under the relaxation fluid-w, or propagation and, where that
 * does not do it, the search of the relaxation fronts or fluid-fronts. */
enum zc_rules { ZC_SWEPT, ZC_POURED, ZC_FRONTS, ZC_FLUID_FRONTS };

/* Walks the proof tree, which must refute every schedule of cost <= target. A NULL tree is a single leaf, and
 * the only one with ZC_FRONTS and ZC_FLUID_FRONTS. */
bool zc_check_proof(struct zc_run *run, const struct zc_document *document, const struct zc_profile *profile,
                    enum zc_objective objective, int64_t target, enum zc_rules rules,
                    const struct zc_node *tree);

/* The state of a propagation: windows of every op, restrictions, offsets. */
struct zc_windows;

/* ZC_TOO_LARGE: a device has more states, or stages, than are held at once. */
enum zc_outcome { ZC_REFUTED, ZC_OPEN, ZC_NO_MEMORY, ZC_TOO_LARGE };

/* What a proof's inner node can restrict; see contract: `n`, `fused`, `offset`. */
struct zc_variable {
  enum { ZC_COUNT, ZC_FUSED, ZC_OFFSET } what;
  int32_t device;
  int32_t counted, starting; /* classes, of zc_windows_class; ZC_FUSED: `counted` is the B */
  int32_t index;
};

/* Windows for "some schedule costs at most target". NULL, with a finding, without memory. */
struct zc_windows *zc_windows_new(struct zc_run *run, const struct zc_profile *profile,
                                  enum zc_objective objective, int64_t target, bool poured);
void zc_windows_free(struct zc_windows *windows);

/* The number of a class of ops: F, B or W of one of the device's stages (`chunk`: its position there, -1 for
 * none written, as with one stage a device), or all its W where they are alike (-1). -1 where there is no
 * such class. And how many ops are in a class; whether a device's offset is an interval from the start. */
int32_t zc_windows_class(const struct zc_windows *windows, int32_t device, int32_t chunk, enum zc_kind kind);
int32_t zc_windows_class_size(const struct zc_windows *windows, int32_t device, int32_t class_number);
bool zc_windows_offset_open(const struct zc_windows *windows, int32_t device);

/* Runs all rules to their common fixpoint. */
enum zc_outcome zc_windows_propagate(struct zc_windows *windows);

/* Goes one node down: from here on only schedules with variable <= value (or, if `above`, > value). */
enum zc_outcome zc_windows_enter(struct zc_windows *windows, const struct zc_variable *variable,
                                 int64_t value, bool above);

/* Goes back up: everything is as it was before the last zc_windows_enter that has not been left. */
void zc_windows_leave(struct zc_windows *windows);

/* Whether a search refutes what propagation, once it has come to rest, leaves open: one stage a device on a
 * chain, span or makespan, no BW that could pay, nothing entered. */
enum zc_outcome zc_fronts_search(struct zc_windows *windows);

/* The same for any placement, and of more than schedules: W is poured. Alike on a device; for the span no
 * offset is an interval. Nothing has to be entered, and no window narrowed. */
enum zc_outcome zc_fluid_search(struct zc_windows *windows);

/* Lowercase hex of the SHA-256 of `length` bytes, 0-terminated. */
void zc_sha256(const void *bytes, size_t length, char hex[65]);

#endif
