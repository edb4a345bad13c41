# zbsolve. `make help` lists the targets; `make demo` is the place to start.
#
# Sources are found by their place in the tree, so a new file needs no line here. Optional parts are found by
# compiling and linking them (.ci/parts): NAME=auto uses what links, NAME=1 must find it, NAME=0 leaves it out.

ifeq ($(origin CC),default)
CC = cc
endif
CFLAGS ?= -O2 -g
PREFIX ?= /usr/local
GLPK   ?= auto
ZLIB   ?= auto
BLAS   ?= auto
MPI    ?= auto
CUDA   ?= auto
NCCL   ?= auto
CMOCKA ?= auto
WERROR ?= 0
FUZZ_SECONDS ?= 60
CUDA_HOME ?= /usr/local/cuda
NVCC      ?= $(CUDA_HOME)/bin/nvcc
CUDA_ARCH ?= 80 90
BUILD  = build
# Where what nvcc makes lies: no CC and no SAN changes it, so that builds may share it.
DEVICE = $(BUILD)
SAN    =

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

export CC CPPFLAGS CFLAGS LDFLAGS BUILD GLPK ZLIB BLAS MPI CUDA NCCL CMOCKA CUDA_HOME NVCC CUDA_ARCH

# These targets build nothing themselves: they must work before there is anything to link, and demo and test
# first fetch what is missing. So the parts are looked for only by the make that builds.
OUTER = help demo test check-long asan tsan fuzz bench golden test-torch fmt fmt-check clean
ifneq ($(filter-out $(OUTER),$(or $(MAKECMDGOALS),all)),)

$(shell CC='$(CC)' CPPFLAGS='$(CPPFLAGS)' CFLAGS='$(CFLAGS)' LDFLAGS='$(LDFLAGS)' \
  GLPK='$(GLPK)' ZLIB='$(ZLIB)' BLAS='$(BLAS)' MPI='$(MPI)' CUDA='$(CUDA)' NCCL='$(NCCL)' CMOCKA='$(CMOCKA)' \
  CUDA_HOME='$(CUDA_HOME)' NVCC='$(NVCC)' .ci/parts write '$(BUILD)/parts.mk')
ifneq ($(.SHELLSTATUS),0)
$(error a part that was asked for does not link)
endif
include $(BUILD)/parts.mk
ifneq ($(PART_CJSON),yes)
$(error cJSON is needed: apt-get install libcjson-dev (make demo and make test install it by themselves))
endif

CUDA_STUBS := $(wildcard runtime/compute_cuda_stub.c)
CUDA_SRC   := $(filter-out $(CUDA_STUBS),$(wildcard runtime/compute_cuda*.c))
NCCL_STUBS := $(wildcard runtime/transport_nccl_stub.c)
NCCL_SRC   := $(filter-out $(NCCL_STUBS),$(wildcard runtime/transport_nccl*.c))
ABSENT := $(if $(filter yes,$(PART_GLPK)),ilp/glpk_stub.c,ilp/glpk_solve.c) \
          $(if $(filter yes,$(PART_ZLIB)),solver/io/gzip_stub.c,solver/io/gzip_zlib.c) \
          $(if $(filter yes,$(PART_BLAS)),runtime/gemm_plain.c,runtime/gemm_blas.c) \
          $(if $(filter yes,$(PART_MPI)),runtime/transport_mpi_stub.c,runtime/transport_mpi.c) \
          $(if $(filter yes,$(PART_CUDA)),$(CUDA_STUBS),$(CUDA_SRC)) \
          $(if $(filter yes,$(PART_NCCL)),$(NCCL_STUBS),$(NCCL_SRC))
LIB_SRC := $(filter-out solver/cli/main.c $(ABSENT), \
             $(wildcard $(addsuffix /*.c,solver/model solver/exact solver/program solver/io solver/cli heuristic ilp)))
PAGES        := $(foreach file,report.html report.css report.js,$(BUILD)/gen/$(file).o)
RUN_SRC := $(filter-out runtime/zbreplay.c $(ABSENT),$(wildcard runtime/*.c))
RUN64_SRC    := $(filter-out $(CUDA_SRC) $(NCCL_SRC),$(RUN_SRC)) $(CUDA_STUBS) $(NCCL_STUBS)
KERNEL_SRC   := $(if $(filter yes,$(PART_CUDA)),$(wildcard kernels/*.cu))
STANDIN_SRC  := $(if $(filter yes,$(PART_CUDA)),$(filter-out \
                  $(if $(filter yes,$(PART_NCCL)),,tests/standin/standin_nccl%),$(wildcard tests/standin/*.c)))
CHECK_SRC    := $(wildcard tests/zbcheck*.c)
SUPPORT_SRC  := $(filter-out $(CHECK_SRC),$(wildcard tests/*.c)) \
                $(filter-out $(wildcard tests/unit/test_*.c),$(wildcard tests/unit/*.c))
# A test that says so by what it includes needs CUDA's or NCCL's headers, and is left out where they are not.
CUDA_UNITS   := $(shell grep -lE 'include "(kernels/kernels|tests/standin/|tests/unit/kernel_trial)' tests/unit/test_*.c)
NCCL_UNITS   := $(shell grep -l 'include <nccl.h>' tests/unit/test_*.c)
UNIT_SRC     := $(filter-out $(if $(filter yes,$(PART_CUDA)),,$(CUDA_UNITS)) \
                  $(if $(filter yes,$(PART_NCCL)),,$(NCCL_UNITS)),$(wildcard tests/unit/test_*.c))
FUZZ_SRC     := $(filter-out tests/fuzz/replay.c,$(wildcard tests/fuzz/*.c))
BENCH_SRC    := $(filter-out $(if $(filter yes,$(PART_CUDA)),,bench/kernels.c),$(wildcard bench/*.c))

object = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
double = $(patsubst %.c,$(BUILD)/obj/double/%.o,$(1))
device = $(patsubst %.cu,$(DEVICE)/obj/%.o,$(1))
standin = $(patsubst %.cu,$(BUILD)/obj/standin/%.o,$(1))

PROGRAMS := $(if $(wildcard solver/cli/main.c),$(BUILD)/zbsolve) $(if $(CHECK_SRC),$(BUILD)/zbcheck) \
            $(if $(wildcard runtime/zbreplay.c),$(BUILD)/zbreplay)
# zbreplay on the device that is not there, for the tests of its command line.
STANDINS := $(if $(and $(KERNEL_SRC),$(STANDIN_SRC)),$(BUILD)/standin/zbreplay)
UNITS    := $(if $(filter yes,$(PART_CMOCKA)),$(UNIT_SRC:tests/unit/%.c=$(BUILD)/tests/%))
REPLAYS  := $(FUZZ_SRC:tests/fuzz/%.c=$(BUILD)/fuzz/%)
FUZZERS  := $(FUZZ_SRC:tests/fuzz/%.c=$(BUILD)/libfuzzer/%)
BENCHES  := $(BENCH_SRC:bench/%.c=$(BUILD)/bench/%)

INCLUDE  = -I.
WARNINGS = -Wall -Wextra -Wpedantic -Wshadow -Wconversion $(if $(filter 1,$(WERROR)),-Werror)
SANITIZE = $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
ALL_CFLAGS = -std=c11 -D_POSIX_C_SOURCE=200809L -pthread $(WARNINGS) $(SANITIZE) $(CPPFLAGS) $(CFLAGS)
NVCC_FLAGS = -std=c++17 -O3 -fmad=false -Xcompiler -Wall,-Wextra \
  $(if $(filter 1,$(WERROR)),-Werror all-warnings -Xcompiler -Werror) \
  $(foreach arch,$(CUDA_ARCH),-gencode arch=compute_$(arch),code=sm_$(arch)) \
  -gencode arch=compute_$(lastword $(CUDA_ARCH)),code=compute_$(lastword $(CUDA_ARCH))
# Kernels as C++ for the CPU. One thread runs all of a kernel, so there is nothing for ThreadSanitizer to see, and
# it would not know the fibers. Wide accesses are casts, which a GPU's compiler takes as they are.
STANDIN_FLAGS = -x c++ -std=c++17 -fno-exceptions -fno-rtti -fno-strict-aliasing -ffp-contract=off -pthread $(WARNINGS) \
  -DZB_STAND_IN='"tests/standin/shim.h"' $(if $(findstring thread,$(SAN)),,$(SANITIZE)) $(CPPFLAGS) $(CFLAGS)
LIBS     = $(LIBS_GLPK) $(LIBS_ZLIB) $(LIBS_CJSON) -lm

# V=1 shows the whole commands.
Q   = $(if $(V),,@)
say = $(if $(V),,@echo '  $(1)')

# What the objects and the library were made with; written only when it changes, so that a change rebuilds them.
record = $(shell mkdir -p '$(dir $(1))')$(if $(call differs,$(strip $(2)),$(file <$(1))),$(file >$(1),$(strip $(2))))
differs = $(if $(and $(findstring x$(1)x,x$(2)x),$(findstring x$(2)x,x$(1)x)),,yes)
$(call record,$(BUILD)/flags,$(CC) $(ALL_CFLAGS) $(LDFLAGS))
$(call record,$(DEVICE)/flags.nvcc,$(NVCC) $(NVCC_FLAGS))
$(call record,$(BUILD)/flags.standin,$(CC) $(STANDIN_FLAGS))
$(call record,$(BUILD)/members,$(LIB_SRC) : $(RUN_SRC) : $(SUPPORT_SRC) : $(CHECK_SRC) : $(KERNEL_SRC) : $(STANDIN_SRC))

endif

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.* ## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{printf "%-19s %s\n", $$1, $$2}'
	@echo 'variables: CC CFLAGS BUILD PREFIX DESTDIR, V=1 (whole commands), WERROR=1, DEPS=0 (install no packages),'
	@echo '           CHROMIUM=1 (install a browser for the tests),'
	@echo '           GLPK|ZLIB|BLAS|MPI|CUDA|NCCL|CMOCKA=auto|1|0 (take it if it links, insist, leave it out),'
	@echo '           CUDA_HOME (the toolkit), NVCC, CUDA_ARCH="80 90" (device code; the last as PTX too),'
	@echo '           DEVICE=DIR (the build whose device code is taken; BUILD itself)'

all: $(PROGRAMS) ## build the programs (default): build/zbsolve, build/zbcheck, build/zbreplay

# The outer targets hand over to a make of their own, with as many jobs as there are processors.
INNER = +@$(MAKE) --no-print-directory $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc 2>/dev/null || echo 2))

demo: ## from nothing to a solved, checked and drawn schedule, and a report of it, in build/demo
	@.ci/deps demo
	$(INNER) run-demo

test: ## from nothing to every fast test passed
	@.ci/deps test
	$(INNER) run-tests

check-long: ## the fast tests, longer, and the tests/*_long.sh
	$(INNER) run-long

# Of what a sanitizer adds -O2 and -O3 make little faster and much slower to compile.
SLOWER = $(if $(filter file,$(origin CFLAGS)),CFLAGS='-O1 -g')

asan: ## the fast tests under AddressSanitizer and UBSan (build/san-address)
	$(INNER) run-tests BUILD=build/san-address SAN=address,undefined $(SLOWER)

tsan: ## the fast tests under ThreadSanitizer (build/san-thread)
	$(INNER) run-tests BUILD=build/san-thread SAN=thread

fuzz: ## each libFuzzer target for FUZZ_SECONDS (60); needs clang
	$(INNER) run-fuzz CC=clang BUILD=build/san-fuzz SAN=address,undefined,fuzzer-no-link

bench: ## measure everything that bench/README.md defines
	$(INNER) run-bench

golden: ## rewrite the expected output of the command-line tests; read the diff
	$(INNER) run-golden

test-torch: ## PyTorch loads, validates and trains in our files, we read its own (installs two releases, 5 GB each)
	$(INNER) all
	@tests/torch/run.sh

fmt: ## format the sources with clang-format
	@find solver heuristic ilp runtime kernels tests bench -name '*.[ch]' -o -name '*.cu' | xargs -r clang-format -i

fmt-check: ## say which sources `make fmt` would change
	@find solver heuristic ilp runtime kernels tests bench -name '*.[ch]' -o -name '*.cu' | \
	  xargs -r clang-format --dry-run --Werror

install: all ## put the programs and configs under PREFIX (/usr/local); DESTDIR is honoured
	install -d '$(DESTDIR)$(PREFIX)/bin'
	install -m 755 $(PROGRAMS) '$(DESTDIR)$(PREFIX)/bin'
	cd configs && find . -name '*.json' -o -name '*.txt' | \
	  xargs -I '{}' install -D -m 644 '{}' '$(abspath $(DESTDIR)$(PREFIX))/share/zbsolve/configs/{}'

clean: ## remove everything that was built
	rm -rf build $(filter-out build,$(BUILD))

run-demo: all
	@tests/demo.sh

run-tests: all $(STANDINS) $(UNITS) $(REPLAYS) $(BENCHES)
	@tests/run.sh fast

run-long: all $(STANDINS) $(UNITS) $(REPLAYS) $(BENCHES)
	@tests/run.sh long

run-golden: all
	@tests/run.sh golden

run-bench: all $(BENCHES)
	@bench/run.sh

run-fuzz: $(FUZZERS)
	@for target in $(notdir $(FUZZERS)); do \
	  mkdir -p tests/fuzz/corpus/$$target && \
	  echo "fuzz: $$target, $(FUZZ_SECONDS) s" && \
	  $(BUILD)/libfuzzer/$$target -max_total_time=$(FUZZ_SECONDS) -timeout=10 -print_final_stats=1 \
	    -artifact_prefix=$(BUILD)/libfuzzer/ tests/fuzz/corpus/$$target || exit 1; \
	done

$(BUILD)/obj/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,cc $<)
	$(Q)$(CC) $(INCLUDE) $(ALL_CFLAGS) $(OPTIMIZE) $(DEFINES) -MMD -MP -c -o $@ $<

# The arithmetic that trains, once more in double, for gradient checks.
$(BUILD)/obj/double/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,cc $< (double))
	$(Q)$(CC) $(INCLUDE) $(ALL_CFLAGS) $(OPTIMIZE) $(DEFINES) -DZB_REAL_DOUBLE -MMD -MP -c -o $@ $<

# The checker shares nothing with the solver, not even an include path.
$(call object,$(CHECK_SRC)): INCLUDE =

# The sweeps over device lattices are loops over rows of integers, and gcc vectorises those from -O3 on.
$(call object,$(wildcard solver/exact/*.c)): OPTIMIZE = $(if $(filter -O2,$(CFLAGS)),-O3)

# Rows of numbers likewise; and a product and a sum are two roundings on every processor.
$(call object,$(RUN_SRC)) $(call double,$(RUN64_SRC)): OPTIMIZE = -ffp-contract=off -fno-math-errno $(if $(filter -O2,$(CFLAGS)),-O3)

$(call object,runtime/transport_mpi.c) $(call double,runtime/transport_mpi.c): DEFINES = $(FLAGS_MPI)

$(call object,$(CUDA_SRC) $(NCCL_SRC) $(STANDIN_SRC) $(CUDA_UNITS) bench/kernels.c): DEFINES = $(FLAGS_CUDA)
$(call object,tests/unit/test_kernels.c): OPTIMIZE = -ffp-contract=off
$(call object,tests/standin/fiber.c tests/standin/shim_block.c): SANITIZE := $(if $(findstring thread,$(SAN)),,$(SANITIZE))
$(BUILD)/tests/test_shim: $(call standin,tests/unit/shim_kernels.cu)
# Tests that call the checker's searches (tests/unit/checker_search.h).
$(BUILD)/tests/test_fluid $(BUILD)/tests/test_flow: $(call object,$(filter-out tests/zbcheck.c,$(CHECK_SRC)))

$(DEVICE)/obj/%.o: %.cu $(DEVICE)/flags.nvcc
	@mkdir -p $(@D)
	$(call say,nvcc $<)
	$(Q)$(NVCC) $(INCLUDE) $(NVCC_FLAGS) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

$(BUILD)/obj/standin/%.o: %.cu $(BUILD)/flags.standin
	@mkdir -p $(@D)
	$(call say,cc $< (stand-in))
	$(Q)$(CC) $(INCLUDE) $(FLAGS_CUDA) $(STANDIN_FLAGS) -MMD -MP -c -o $@ $<

$(call object,solver/cli/main.c): DEFINES = -DZB_PARTS='"$(PARTS)"'
$(call object,solver/cli/main.c): $(BUILD)/parts.mk

# The report's page, style and script as C arrays: report.html becomes zb_report_html, with a NUL behind it.
$(BUILD)/gen/%.c: solver/io/%
	@mkdir -p $(@D)
	$(Q){ echo '#include "solver/io/report_files.h"' && \
	  echo 'const unsigned char zb_$(subst .,_,$*)[] = {' && od -An -v -tu1 $< | sed 's/[0-9][0-9]*/&,/g' && \
	  echo '0};' && echo 'const size_t zb_$(subst .,_,$*)_size = sizeof zb_$(subst .,_,$*) - 1;'; } >$@

$(BUILD)/gen/%.o: $(BUILD)/gen/%.c $(BUILD)/flags
	$(call say,cc $<)
	$(Q)$(CC) $(INCLUDE) $(ALL_CFLAGS) -c -o $@ $<

$(BUILD)/libzb.a: $(call object,$(LIB_SRC)) $(PAGES) $(BUILD)/members
$(BUILD)/libzbrun.a: $(call object,$(RUN_SRC)) $(BUILD)/members
$(BUILD)/libzbrun64.a: $(call double,$(RUN64_SRC)) $(BUILD)/members
$(BUILD)/libzbcuda.a: $(call device,$(KERNEL_SRC)) $(BUILD)/members
$(BUILD)/libzbstandin.a: $(call standin,$(KERNEL_SRC)) $(call object,$(STANDIN_SRC)) $(BUILD)/members
$(BUILD)/libzbtest.a: $(call object,$(SUPPORT_SRC)) $(BUILD)/members
$(BUILD)/%.a:
	@rm -f $@
	@$(AR) rcs $@ $(filter %.o,$^)

define link
@mkdir -p $(@D)
$(call say,link $@)
$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group
endef

$(BUILD)/zbsolve: $(call object,solver/cli/main.c) $(BUILD)/libzb.a
	$(link) $(LIBS)

$(BUILD)/zbcheck: $(call object,$(CHECK_SRC)) $(BUILD)/members
	$(link)

$(BUILD)/zbreplay: $(call object,runtime/zbreplay.c) $(BUILD)/libzbrun.a $(BUILD)/libzbcuda.a $(BUILD)/libzb.a
	$(link) $(LIBS_BLAS) $(LIBS_MPI) $(LIBS_NCCL) $(LIBS_CUDA) $(LIBS)

$(BUILD)/standin/zbreplay: $(call object,runtime/zbreplay.c) $(BUILD)/libzbrun.a $(BUILD)/libzbstandin.a $(BUILD)/libzb.a
	$(link) $(LIBS_BLAS) $(LIBS_MPI) $(LIBS)

$(BUILD)/tests/test_gradient: $(call double,tests/unit/test_gradient.c) $(BUILD)/libzbrun64.a $(BUILD)/libzb.a
	$(link) $(LIBS_CMOCKA) $(LIBS_BLAS) $(LIBS_MPI) $(LIBS)

# The kernels' tests for a machine that has a GPU: no stand-in.
$(BUILD)/device/test_kernels: tests/unit/test_kernels.c $(BUILD)/libzbcuda.a
	$(call say,cc and link $@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(INCLUDE) $(FLAGS_CUDA) $(ALL_CFLAGS) -ffp-contract=off -DZB_ON_DEVICE -MMD -MP -o $@ $^ \
	  $(LIBS_CMOCKA) $(LIBS_CUDA) $(LIBS)

$(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.o $(BUILD)/libzbtest.a $(BUILD)/libzbrun.a $(BUILD)/libzbstandin.a $(BUILD)/libzb.a
	$(link) $(LIBS_CMOCKA) $(LIBS_BLAS) $(LIBS_MPI) $(LIBS)

# The backend's tests for a machine that has a GPU: no stand-in.
$(BUILD)/device/test_compute: $(call object,tests/unit/test_compute.c) $(BUILD)/libzbtest.a $(BUILD)/libzbrun.a \
  $(BUILD)/libzbcuda.a $(BUILD)/libzb.a
	$(link) $(LIBS_CMOCKA) $(LIBS_BLAS) $(LIBS_MPI) $(LIBS_NCCL) $(LIBS_CUDA) $(LIBS)

$(BUILD)/bench/kernels: $(call object,bench/kernels.c) $(BUILD)/libzbcuda.a $(BUILD)/libzb.a
	$(link) $(LIBS_CUDA) $(LIBS)

$(BUILD)/standin/kernels: $(call object,bench/kernels.c) $(BUILD)/libzbrun.a $(BUILD)/libzbstandin.a $(BUILD)/libzb.a
	$(link) $(LIBS_BLAS) $(LIBS)

$(BUILD)/bench/%: $(BUILD)/obj/bench/%.o $(BUILD)/libzbtest.a $(BUILD)/libzb.a
	$(link) $(LIBS)

$(BUILD)/fuzz/%: $(BUILD)/obj/tests/fuzz/%.o $(BUILD)/obj/tests/fuzz/replay.o $(BUILD)/libzbtest.a $(BUILD)/libzb.a
	$(link) $(LIBS)

$(BUILD)/libfuzzer/%: $(BUILD)/obj/tests/fuzz/%.o $(BUILD)/libzbtest.a $(BUILD)/libzb.a
	$(link) -fsanitize=fuzzer $(LIBS)

.SECONDARY:
.PHONY: all $(OUTER) install run-demo run-tests run-long run-golden run-bench run-fuzz

-include $(sort $(shell find '$(BUILD)/obj' '$(DEVICE)/obj/kernels' -name '*.d' 2>/dev/null))
