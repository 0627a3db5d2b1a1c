# evenload: one Makefile. `make` builds build/evenload and its modules, `make install` installs them, `make check` builds the tests'
# programs; `make help` says the rest.
#
# It probes by compiling (scripts/probes) and prints what it found and what it left out. A library is looked for where pkg-config says,
# then under LIBS_PREFIX, then where the compiler looks by itself (an environment module's CPATH and LIBRARY_PATH count).

BUILD  ?= build
MPICC  ?= mpicc
WERROR ?= -Werror
Q      := $(if $(V),,@)
SHOW    = $(if $(V),true,echo "  $(1)")
comma  := ,

# The one place of the version is bench/commands.c.
VERSION := $(shell sed -n 's/^\#define EL_VERSION "\(.*\)"/\1/p' bench/commands.c)

# Where `make install` puts things; DESTDIR is put before all of it.
PREFIX  ?= /usr/local
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR  ?= $(PREFIX)/share/zsh/site-functions
FISHDIR ?= $(PREFIX)/share/fish/vendor_completions.d

ifneq ($(filter-out /usr,$(LIBS_PREFIX)),)
PKG_PATH      := $(LIBS_PREFIX)/lib/pkgconfig:$(LIBS_PREFIX)/lib64/pkgconfig:$(LIBS_PREFIX)/share/pkgconfig:
LIBS_CPPFLAGS := -isystem $(LIBS_PREFIX)/include
LIBS_LDFLAGS  := $(foreach lib,lib lib64,-L$(LIBS_PREFIX)/$(lib) -Wl$(comma)-rpath$(comma)$(LIBS_PREFIX)/$(lib))
endif
# PREFIX was once the place of the libraries.
PREFIX_NOTE := $(if $(filter install uninstall,$(MAKECMDGOALS))$(LIBS_PREFIX)$(filter file,$(origin PREFIX)),,$(wildcard $(PREFIX)/include/jansson.h $(PREFIX)/include/dnnl.h $(PREFIX)/include/cmocka.h))

WARN := -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2 $(WERROR)
OPT  := -O2 -g1
ifeq ($(SAN),address)
# Compiled in half the time, which is more than most of it runs; what computes gets -O1 below.
OPT  := -O0 -g1 -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=undefined,float-cast-overflow -fno-omit-frame-pointer
else ifeq ($(SAN),thread)
OPT  := -O1 -g1 -fsanitize=thread -fno-omit-frame-pointer
else ifeq ($(SAN),fuzz)
OPT  := -O2 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
else ifneq ($(SAN),)
$(error SAN must be address, thread or fuzz, not '$(SAN)')
endif

# Probes. Each says a version, or nothing; without sanitizers, whose programs do not start on every kernel.
pkg   = $(shell PKG_CONFIG_PATH='$(PKG_PATH)'$$PKG_CONFIG_PATH pkg-config $(2) $(1) 2>/dev/null)
libs  = $(or $(call pkg,$(1),--libs),-l$(1))
probe = $(shell mkdir -p $(BUILD)/probes; out=$(BUILD)/probes/$(1)-$$$$; $(2) $(CPPFLAGS) $(LIBS_CPPFLAGS) $(JANSSON_CFLAGS) $(CMOCKA_CFLAGS) \
           -o $$out scripts/probes/$(1).c $(LIBS_LDFLAGS) $(LDFLAGS) $(3) 2>/dev/null && $$out 2>/dev/null; rm -f $$out)
ifneq ($(filter-out clean help format fuzz uninstall dist deb,$(or $(MAKECMDGOALS),all)),)
JANSSON_CFLAGS := $(patsubst -I%,-isystem%,$(call pkg,jansson,--cflags))
JANSSON_LIBS   := $(call libs,jansson)
CMOCKA_CFLAGS  := $(patsubst -I%,-isystem%,$(call pkg,cmocka,--cflags))
CMOCKA_LIBS    := $(call libs,cmocka)
PNG_CFLAGS     := $(patsubst -I%,-isystem%,$(call pkg,libpng,--cflags))
PNG_LIBS       := $(or $(call pkg,libpng,--libs),-lpng)
JPEG_CFLAGS    := $(patsubst -I%,-isystem%,$(call pkg,libjpeg,--cflags))
JPEG_LIBS      := $(or $(call pkg,libjpeg,--libs),-ljpeg)
DNNL_CFLAGS    := $(patsubst -I%,-isystem%,$(call pkg,dnnl,--cflags))
DNNL_LIBS      := $(call libs,dnnl)
HAVE_CC        := $(shell $(CC) --version 2>/dev/null | head -1)
HAVE_CXX       := $(shell $(CXX) --version 2>/dev/null | head -1)
HAVE_JANSSON   := $(call probe,jansson,$(CC),$(JANSSON_LIBS))
HAVE_CMOCKA    := $(if $(call probe,cmocka,$(CC),$(CMOCKA_LIBS)),$(or $(call pkg,cmocka,--modversion),yes))
HAVE_DNNL      := $(if $(filter 0,$(DNNL)),,$(call probe,dnnl,$(CC) $(DNNL_CFLAGS),$(DNNL_LIBS)))
HAVE_PNG       := $(if $(filter 0,$(PNG)),,$(call probe,png,$(CC) $(PNG_CFLAGS),$(PNG_LIBS)))
HAVE_JPEG      := $(if $(filter 0,$(JPEG)),,$(call probe,jpeg,$(CC) $(JPEG_CFLAGS),$(JPEG_LIBS)))
HAVE_MPI       := $(if $(filter 0,$(MPI)),,$(call probe,mpi,$(MPICC),))
# CUDA's probe has several answers, and sets each itself. The sanitizers are for the host's code.
CUDA_MISSING   := $(if $(filter 0,$(CUDA)),switched off (CUDA=0),$(if $(SAN),left out under a sanitizer))
CUDA_FOUND     := $(if $(CUDA_MISSING),,$(shell mkdir -p $(BUILD)/probes; bash scripts/probes/cuda.sh '$(CC)' $(BUILD)/probes))
space          := $(subst x,,x x)
$(foreach line,$(CUDA_FOUND),$(eval $(subst |,$(space),$(line))))
# A hundred test programs are linked: by lld, where it is there, which takes half the time.
QUICK_LD       := $(if $(call probe,jansson,$(CC) -fuse-ld=lld,$(JANSSON_LIBS)),-fuse-ld=lld)
# A tarball of `make dist` brings its commit along.
COMMIT         := $(shell cat packaging/commit 2>/dev/null || GIT_OPTIONAL_LOCKS=0 git describe --always --dirty --abbrev=12 2>/dev/null || echo unknown)
endif

override CPPFLAGS := -I. -D_GNU_SOURCE $(LIBS_CPPFLAGS) $(JANSSON_CFLAGS) $(CPPFLAGS)
override CFLAGS   := -std=c11 -pthread -fPIC $(OPT) $(CFLAGS)
# The linker's hash of a file is how a run knows the build that began it (bench/base/program.c).
override LDFLAGS  := -pthread $(OPT) -Wl,--build-id=sha1 $(LIBS_LDFLAGS) $(LDFLAGS)
LIBS := $(JANSSON_LIBS) -ldl -lm

# What there is to build. Some folders become modules, opened at run time; all else is one library under the program and every test.
DNNL_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard kernels/cpu/dnnl/*.c))
MPI_OBJECTS  := $(patsubst %.c,$(BUILD)/%.o,$(wildcard runtime/comm/mpi/module/*.c))
CODEC_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard runtime/data/codec/*.c))
CUDA_OBJECTS := $(patsubst %,$(BUILD)/%.o,$(basename $(wildcard kernels/cuda/*.cu kernels/cuda/*.c runtime/device/cuda/*.c)))
CUDNN_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard kernels/cuda/cudnn/*.c))
NCCL_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard runtime/comm/nccl/module/*.c))
NVTX_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard profiles/nvtx/*.c))
PROFILER_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard profiles/nccl/*.c))
# NCCL opens it in other programs too.
PROFILER := $(BUILD)/modules/libnccl-profiler-evenload.so
module  = $(if $(and $(1),$(2)),$(BUILD)/modules/$(3).so)
MODULES := $(call module,$(HAVE_DNNL),$(DNNL_OBJECTS),el_dnnl) $(call module,$(HAVE_MPI),$(MPI_OBJECTS),el_mpi) \
           $(call module,$(HAVE_PNG),$(CODEC_OBJECTS),el_png) $(call module,$(HAVE_JPEG),$(CODEC_OBJECTS),el_jpeg) \
           $(call module,$(HAVE_CUDA),$(CUDA_OBJECTS),el_cuda) \
           $(call module,$(and $(HAVE_CUDA),$(HAVE_CUDNN)),$(CUDNN_OBJECTS),el_cudnn) $(call module,$(and $(HAVE_CUDA),$(HAVE_NCCL)),$(NCCL_OBJECTS),el_nccl) \
           $(call module,$(HAVE_CUDA),$(NVTX_OBJECTS),el_nvtx) $(if $(PROFILER_OBJECTS),$(PROFILER))
# BENCH=0: the library without the program's own part, for tests of what lies below.
SOURCES := $(filter-out kernels/cuda/%,$(wildcard kernels/*.c kernels/*/*.c runtime/*/*.c runtime/modes/*/*.c runtime/comm/*/*.c profiles/*.c $(if $(filter 0,$(BENCH)),,bench/*.c bench/*/*.c)))
LIBRARY := $(BUILD)/libevenload.a
OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(filter-out bench/main.c,$(SOURCES)))
WHOLE   := -Wl,--whole-archive $(LIBRARY) -Wl,--no-whole-archive

# Every file in these folders is a test program of its own; files right in tests/ are linked to each of them. Those in tests/gpu need
# a toolkit and say in a skip that there is no driver, but for one: it has the CUDA kernels compiled for emulated threads.
TEST_SOURCES := $(wildcard tests/unit/*.c tests/conformance/*.c tests/equivalence/*.c)
TEST_SUPPORT := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/*.c))
EMULATED_TEST := $(if $(HAVE_CXX),$(BUILD)/tests/gpu/test_kernels_emulated)
GPU_TESTS    := $(if $(HAVE_CUDA),$(patsubst %.c,$(BUILD)/%,$(filter-out %emulated.c,$(wildcard tests/gpu/test_*.c))))
CARDS_TESTS  := $(if $(HAVE_CXX),$(patsubst %.c,$(BUILD)/%,$(wildcard tests/cards/test_*.c)))
TESTS        := $(TEST_SOURCES:%.c=$(BUILD)/%) $(GPU_TESTS) $(EMULATED_TEST) $(CARDS_TESTS)
# The GPUs' modules of our own sources, for emulated threads and for libraries that stand for CUDA's (tests/cards): no toolkit is needed.
emulated      = $(patsubst %,$(BUILD)/emulated/%.o,$(wildcard $(1)))
EMULATED_KERNELS := $(call emulated,kernels/cuda/*.cu kernels/cuda/*.c)
CARDS_CUDNN_OBJECTS := $(call emulated,kernels/cuda/cudnn/*.c)
CARDS_LIBRARY_OBJECTS := $(filter-out $(call emulated,tests/cards/test_*.c),$(call emulated,tests/cards/*.c tests/gpu/emulator/*.cc))
CARDS_CUDA_OBJECTS := $(EMULATED_KERNELS) $(call emulated,runtime/device/cuda/*.c)
CARDS_NCCL_OBJECTS := $(if $(wildcard tests/cards/nccl*.c),$(call emulated,runtime/comm/nccl/module/*.c))
CARDS         := $(if $(HAVE_CXX),$(BUILD)/cards/evenload)
CARDS_MODULES := $(BUILD)/cards/modules/el_cuda.so $(BUILD)/cards/modules/el_cudnn.so $(if $(CARDS_NCCL_OBJECTS),$(BUILD)/cards/modules/el_nccl.so) \
                 $(filter-out %/el_cuda.so %/el_cudnn.so %/el_nccl.so,$(MODULES:$(BUILD)/%=$(BUILD)/cards/%))
GPU_LIMITS   := $(if $(HAVE_CUDA),$(BUILD)/tests/gpu/limits)
INJECTED     := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/injected/*.c)) $(BUILD)/tests/fuzz/injected
# The parsers' targets: with a driver of our own, or (SAN=fuzz, by `make fuzz`) with libFuzzer.
FUZZ         := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_OBJECTS := $(patsubst %,$(BUILD)/tests/fuzz/%.o,support mutate $(if $(filter fuzz,$(SAN)),,driver))

# The man page, made of the program's own help.
MANUAL := $(BUILD)/share/evenload.1

# What an installation has in lib/ and share/, a build has beside each program, as links: nowhere else is it looked for.
PROGRAM_TESTS := $(TESTS) $(FUZZ) $(BUILD)/tests/fuzz/injected $(GPU_LIMITS)
TEST_LINKS    := $(foreach folder,$(sort $(dir $(PROGRAM_TESTS))),$(addprefix $(folder),modules plots hardware hook))
UP            := $(if $(filter /%,$(BUILD))$(findstring ..,$(BUILD)),$(CURDIR),$(shell echo '$(BUILD)' | sed 's,[^/][^/]*,..,g'))

.PHONY: all check beside injected fuzz fuzz-targets clean help format report probes programs flags install uninstall dist deb wheel FORCE
.DELETE_ON_ERROR:
all: report $(BUILD)/evenload $(MODULES) $(if $(SAN),,$(MANUAL))
	@rm -f $(filter-out $(MODULES),$(wildcard $(BUILD)/modules/*.so))

report:
	@echo "evenload $(COMMIT)$(if $(SAN), with the $(SAN) sanitizer)$(if $(LIBS_PREFIX), looking in $(LIBS_PREFIX) too)"
	@$(if $(PREFIX_NOTE),echo "  note: PREFIX=$(PREFIX) is where 'make install' installs to; for libraries that lie there say LIBS_PREFIX=$(PREFIX)",true)
	@echo "  compiler $(or $(HAVE_CC),NO: install gcc; nothing can be built without it)"
	@echo "  jansson  $(or $(HAVE_JANSSON),NO: install libjansson-dev; nothing can be built without it)"
	@echo "  oneDNN   $(or $(HAVE_DNNL),no: convolutions and matrix work run on the plain C reference (install libdnnl-dev))"
	@echo "  MPI      $(or $(HAVE_MPI),no: ranks are started by evenload itself and talk over shared memory or tcp (libopenmpi-dev openmpi-bin))"
	@echo "  CUDA     $(if $(HAVE_CUDA),$(HAVE_CUDA)$(comma) $(cudnn_words)$(comma) $(nccl_words),no: $(CUDA_MISSING); there are no GPU devices)"
	@echo "  images $(or $(strip $(HAVE_PNG)),no PNG (libpng-dev)), $(or $(strip $(HAVE_JPEG)),no JPEG (libjpeg-dev)), PPM"
	@echo "  cmocka   $(or $(HAVE_CMOCKA),no: the tests are left out (install libcmocka-dev))"
	@$(if $(and $(HAVE_CC),$(HAVE_JANSSON)),true,exit 2)

cudnn_words = $(if $(HAVE_CUDNN),cuDNN $(HAVE_CUDNN),no cuDNN (convolutions by cuBLAS))
nccl_words  = $(if $(HAVE_NCCL),NCCL $(HAVE_NCCL),no NCCL (other communicators serve))

check: beside $(if $(HAVE_CMOCKA),$(TESTS)) $(FUZZ)
# What command lines' tests need.
beside: all $(GPU_LIMITS) $(CARDS)
injected: $(INJECTED)

# libFuzzer is clang's: a build of its own, beside the other.
CLANG ?= $(firstword $(shell command -v clang clang-19 clang-16 clang-14 2>/dev/null))
fuzz:
	@[ -n "$(CLANG)" ] || { echo "make fuzz: no clang: apt install clang libclang-rt-14-dev (Debian 12), or CLANG=program"; exit 2; }
	@echo 'int LLVMFuzzerTestOneInput(void){return 0;}' | $(CLANG) -fsanitize=fuzzer,address,undefined -x c -o /dev/null - 2>/dev/null || \
	 { echo "make fuzz: $(CLANG) has no libFuzzer: apt install libclang-rt-14-dev (Debian 12), or another CLANG=program"; exit 2; }
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/fuzz CC=$(CLANG) SAN=fuzz DNNL=0 MPI=0 CUDA=0 WERROR= fuzz-targets
fuzz-targets: $(FUZZ) $(BUILD)/tests/fuzz/injected

help:
	@echo "make            build/evenload and its modules"
	@echo "make install    the program, its modules, plots, man page and completions, to PREFIX (now $(PREFIX)); make uninstall removes them"
	@echo "make check      the tests' programs too (scripts/test runs them)"
	@echo "make dist       $(BUILD)/evenload-$(VERSION).tar.gz, which builds without git; make deb: a Debian package from it"
	@echo "make wheel      $(BUILD)/evenload-$(VERSION)-....whl: what was built, for pip install"
	@echo "make fuzz       the parsers' targets with libFuzzer in build/fuzz (needs clang; scripts/attack runs them)"
	@echo "make format     clang-format over all sources"
	@echo "make clean      removes $(BUILD)"
	@echo "settings: V=1 BUILD=dir SAN=address|thread LIBS_PREFIX=dir WERROR= DNNL=0 MPI=0 CUDA=0 CUDA_ARCHS='75 80 90' PNG=0 JPEG=0 CC=cc MPICC=mpicc; of install: PREFIX=dir DESTDIR=dir"

# For scripts: what the probes found, the tests' programs, and the flags a checker of sources needs.
probes:
	@printf '%s\n' "compiler=$(HAVE_CC)" "jansson=$(HAVE_JANSSON)" "dnnl=$(HAVE_DNNL)" "mpi=$(HAVE_MPI)" "png=$(HAVE_PNG)" "jpeg=$(HAVE_JPEG)" "cuda=$(HAVE_CUDA)" "cudnn=$(HAVE_CUDNN)" "nccl=$(HAVE_NCCL)" "cmocka=$(HAVE_CMOCKA)"
programs:
	@printf '%s\n' $(TESTS) $(FUZZ)
flags:
	@echo $(CPPFLAGS) '-DEL_BUILD_COMMIT="checked"' -std=c11 $(DNNL_CFLAGS) $(PNG_CFLAGS) $(JPEG_CFLAGS) $(CUDA_CFLAGS) $(CUDNN_CFLAGS) $(NCCL_CFLAGS) $(CMOCKA_CFLAGS) $(if $(HAVE_MPI),$$($(MPICC) -showme:compile 2>/dev/null))

format:
	$(Q)$$(command -v clang-format-14 || echo clang-format) -i $$(git ls-files '*.c' '*.h' '*.cu' '*.cuh')

clean:
	$(Q)rm -rf $(BUILD)

$(MANUAL): packaging/manual $(BUILD)/evenload
	@mkdir -p $(@D)
	$(Q)packaging/manual $(abspath $(BUILD)/evenload) $(VERSION) > $@

# Under sudo what its caller built is installed as it is: root's PATH may not have a compiler or toolkit that was there.
BIN   := $(DESTDIR)$(PREFIX)/bin
LIB   := $(DESTDIR)$(PREFIX)/lib/evenload
SHARE := $(DESTDIR)$(PREFIX)/share
# The pages as they are in the sources, and all that they link to.
PAGES := README.md README.zh.md CHANGES.md CONTRIBUTING.md LICENSE action.yml $(wildcard docs/*.md docs/images/* scripts/examples/* results/README.md \
    results/published-steps/README.md \
    results/reference/*/*.json results/reference/*/*.csv results/reference/*/plots/*.png)
install: $(if $(and $(SUDO_UID),$(wildcard $(BUILD)/evenload)),,all)
	$(if $(SAN),$(error install: a build with a sanitizer is not for installing))
	$(Q)rm -rf "$(LIB)" "$(SHARE)/evenload" "$(SHARE)/doc/evenload"
	$(Q)install -d "$(BIN)" "$(LIB)/modules" "$(SHARE)/evenload/plots" "$(SHARE)/evenload/hardware" "$(SHARE)/evenload/hook" "$(SHARE)/man/man1" \
	    "$(DESTDIR)$(BASHDIR)" "$(DESTDIR)$(ZSHDIR)" "$(DESTDIR)$(FISHDIR)"
	$(Q)install $(BUILD)/evenload "$(BIN)"
	$(Q)for file in $(BUILD)/modules/*.so; do [ ! -e "$$file" ] || install -m 644 "$$file" "$(LIB)/modules" || exit 1; done
	$(Q)install -m 644 plots/*.gnuplot plots/report.* "$(SHARE)/evenload/plots"
	$(Q)install -m 644 profiles/hardware/*.json "$(SHARE)/evenload/hardware"
	$(Q)install -m 644 profiles/hook/*.py "$(SHARE)/evenload/hook"
	$(Q)install -m 644 $(MANUAL) "$(SHARE)/man/man1"
	$(Q)install -m 644 packaging/completion/evenload.bash "$(DESTDIR)$(BASHDIR)/evenload"
	$(Q)install -m 644 packaging/completion/evenload.zsh "$(DESTDIR)$(ZSHDIR)/_evenload"
	$(Q)install -m 644 packaging/completion/evenload.fish "$(DESTDIR)$(FISHDIR)"
	$(Q)for page in $(PAGES); do install -D -m 644 "$$page" "$(SHARE)/doc/evenload/$$page" || exit 1; done
	@echo "installed: $(BIN)/evenload"

uninstall:
	$(Q)rm -rf "$(LIB)" "$(SHARE)/evenload" "$(SHARE)/doc/evenload"
	$(Q)rm -f "$(BIN)/evenload" "$(SHARE)/man/man1/evenload.1" "$(DESTDIR)$(BASHDIR)/evenload" "$(DESTDIR)$(ZSHDIR)/_evenload" "$(DESTDIR)$(FISHDIR)/evenload.fish"

# The files of HEAD, and what only git knows: the commit and its date, the latter for Debian's changelog.
DIST := evenload-$(VERSION)
dist:
	@git rev-parse HEAD >/dev/null || { echo "make dist: needs the git repository"; exit 2; }
	$(Q)mkdir -p $(BUILD)/dist
	$(Q)git describe --always --abbrev=12 >$(BUILD)/dist/commit
	$(Q)printf 'evenload (%s) unstable; urgency=medium\n\n  * Commit %s.\n\n -- %s  %s\n' '$(VERSION)' "$$(cat $(BUILD)/dist/commit)" \
	    "$$(sed -n 's/^Maintainer: //p' packaging/debian/control)" "$$(git log -1 --format=%cD)" >$(BUILD)/dist/changelog
	$(Q)git archive --prefix=$(DIST)/packaging/ --add-file=$(BUILD)/dist/commit --prefix=$(DIST)/packaging/debian/ \
	    --add-file=$(BUILD)/dist/changelog --prefix=$(DIST)/ HEAD | gzip -n >$(BUILD)/$(DIST).tar.gz
	@echo "$(BUILD)/$(DIST).tar.gz"

deb: dist
	$(Q)rm -rf $(BUILD)/deb && mkdir -p $(BUILD)/deb && tar -C $(BUILD)/deb -xzf $(BUILD)/$(DIST).tar.gz
	$(Q)cd $(BUILD)/deb/$(DIST) && cp -r packaging/debian debian && env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS -u BUILD dpkg-buildpackage -b -us -uc -jauto
	@ls $(BUILD)/deb/*.deb

# An installation in a zip. Its program looks for libraries among those that come along first, for itself and its modules.
$(BUILD)/wheel/evenload: $(BUILD)/bench/main.o $(LIBRARY)
	@mkdir -p $(@D); $(call SHOW,link   $@)
	$(Q)$(CC) $(LDFLAGS) -rdynamic -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/../lib/evenload/libs' -o $@ $< $(WHOLE) $(LIBS)
wheel: all $(BUILD)/wheel/evenload
	$(Q)rm -rf $(BUILD)/wheel/image $(BUILD)/evenload-*.whl
	$(Q)$(MAKE) -s --no-print-directory install DESTDIR=$(BUILD)/wheel/image PREFIX= >/dev/null
	$(Q)rm -r $(BUILD)/wheel/image/share/doc && install $(BUILD)/wheel/evenload $(BUILD)/wheel/image/bin
	$(Q)packaging/wheel.py $(VERSION) $(BUILD)/wheel/image $(BUILD)

# Stamps change when what they hold changes: other flags, or another commit in the files that name it, compile again.
stamp = mkdir -p $(@D); printf '%s\n' '$(1)' | cmp -s - $@ || printf '%s\n' '$(1)' > $@
$(BUILD)/flags.stamp: FORCE | report
	@$(call stamp,$(CC) $(MPICC) $(CPPFLAGS) $(CFLAGS))
$(BUILD)/cuda.stamp: FORCE | report
	@$(call stamp,$(CUDA_FOUND) $(CUDA_ARCHS))
$(BUILD)/commit.stamp: FORCE
	@$(call stamp,$(COMMIT) $(HAVE_MPI))
COMMIT_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(if $(SOURCES),$(shell grep -ls EL_BUILD_COMMIT $(SOURCES))))
$(COMMIT_OBJECTS): $(BUILD)/commit.stamp
$(COMMIT_OBJECTS): EXTRA += -DEL_BUILD_COMMIT='"$(COMMIT)"'
# What else the record says of a build, for a comparison of two.
$(BUILD)/bench/machine/environment.o: EXTRA += -DEL_BUILD_FLAGS='"$(subst ",\",$(strip $(CFLAGS)))"' -DEL_BUILD_MPI='"$(HAVE_MPI)"'

# The reference kernels are the truth: no contraction, no fast-math. The fast ones choose their instruction set at run time.
# Under the sanitizers, which forbid most of it, -O3 takes up to three times as long to compile.
KERNEL_OPT := $(if $(filter address thread,$(SAN)),-O1,-O3)
$(BUILD)/kernels/reference/%.o: EXTRA += $(KERNEL_OPT) -ffp-contract=off
$(BUILD)/kernels/cpu/%.o: EXTRA += $(KERNEL_OPT) -fno-math-errno -fno-trapping-math
# Products and polynomials (exp) gain from contraction; what memory bounds does not.
$(patsubst %,$(BUILD)/kernels/cpu/%.o,attention elementwise layer_norm tiles vector): EXTRA += -ffp-contract=fast
$(BUILD)/kernels/bf16.o $(BUILD)/runtime/comm/combine.o $(BUILD)/runtime/state/state.o $(BUILD)/runtime/data/bitmap.o: EXTRA += $(KERNEL_OPT)
ifeq ($(SAN),address)
# GCC 11 gives vectors of 64 bytes too little alignment on the stack that finds uses after return.
$(BUILD)/kernels/cpu/%.o: EXTRA += --param asan-use-after-return=0
endif
$(DNNL_OBJECTS): EXTRA += $(DNNL_CFLAGS)
$(CODEC_OBJECTS): EXTRA += $(PNG_CFLAGS) $(JPEG_CFLAGS)
# Foreign headers by -isystem: our warnings are for our code.
$(CUDA_OBJECTS) $(NCCL_OBJECTS) $(NVTX_OBJECTS) $(GPU_TESTS:=.o) $(GPU_LIMITS:=.o): $(BUILD)/cuda.stamp
$(CUDA_OBJECTS) $(CUDNN_OBJECTS) $(NCCL_OBJECTS) $(NVTX_OBJECTS) $(BUILD)/tests/gpu/%.o: EXTRA += $(CUDA_CFLAGS) $(NCCL_CFLAGS) $(CUDNN_CFLAGS)
# The compiler takes twice as long with more, and what the tests do themselves is little. The thread sanitizer has those that fill and
# compare memory, and each access costs it a call. cmocka gives each test a state, which few of them use.
$(BUILD)/tests/%.o: EXTRA += $(CMOCKA_CFLAGS) $(if $(filter address,$(SAN)),-O0,-O1) -g1 -Wno-unused-parameter

# What starts, reads and prints compiles in 0.6 of the time, and runs as long.
$(BUILD)/bench/%.o: EXTRA += $(if $(SAN),,-O1)

$(BUILD)/%.o: %.c $(BUILD)/flags.stamp Makefile
	@mkdir -p $(@D); $(call SHOW,cc     $<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(WARN) $(EXTRA) -MMD -MP -c -o $@ $<

$(MPI_OBJECTS): $(BUILD)/%.o: %.c $(BUILD)/flags.stamp Makefile
	@mkdir -p $(@D); $(call SHOW,mpicc  $<)
	$(Q)$(MPICC) $(CPPFLAGS) $(CFLAGS) $(WARN) -Wno-cast-function-type -MMD -MP -c -o $@ $<

# Machine code for the cards that training runs on, by compute capability, and PTX of the last, from which a driver makes it for newer ones.
CUDA_ARCHS ?= 75 80 90
NVCC_ARCH  := $(foreach arch,$(CUDA_ARCHS),-gencode arch=compute_$(arch),code=sm_$(arch)) \
              -gencode arch=compute_$(lastword $(CUDA_ARCHS)),code=compute_$(lastword $(CUDA_ARCHS))
$(BUILD)/runtime/device/cuda/module.o: EXTRA += -DEL_CUDA_CAPABILITY_MIN=$(firstword $(shell printf '%s\n' $(CUDA_ARCHS) | sort -n))
# No -Wshadow: to C++ a function named as its struct hides a constructor.
NVCC_WARN  := $(if $(WERROR),--Werror all-warnings -Xcompiler -Werror) -Xcompiler -Wall,-Wextra,-Wpointer-arith,-Wvla
NVCC_FLAGS := -std=c++17 -O3 -lineinfo -Xcompiler -fPIC,-g,-fno-exceptions $(NVCC_ARCH)
$(BUILD)/%.o: %.cu $(BUILD)/cuda.stamp Makefile
	@mkdir -p $(@D); $(call SHOW,nvcc   $<)
	$(Q)$(NVCC) -I. $(NVCC_FLAGS) $(NVCC_WARN) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

$(BUILD)/emulated/%.cu.o $(BUILD)/emulated/%.cc.o: EMULATED := $(CXX) -std=c++17 -Wall -Wextra $(WERROR) -include tests/gpu/emulator/emulator.h -x c++
$(BUILD)/emulated/%.c.o: EMULATED := $(CC) -std=c11 $(WARN)
# They run on little, and -O2 takes a fifth longer to compile. Products take a third of the tests' time.
$(EMULATED_KERNELS) $(call emulated,tests/cards/cublas.c tests/cards/cudnn.c tests/gpu/emulator/*.cc): EXTRA += -O1
$(call emulated,tests/cards/cublas.c): EXTRA += $(if $(SAN),,-O3)
# Their loads and stores call what tests/gpu/emulator/races.cc has; no library of the sanitizer is linked.
$(if $(SAN),,$(call emulated,kernels/cuda/*.cu tests/gpu/emulator/planted.cc)): EXTRA += -fsanitize=thread
# What they define is behind the calls of calls.c.
CARDS_BEHIND  := $(filter-out %/calls.c.o,$(call emulated,tests/cards/*.c))
$(CARDS_BEHIND): EXTRA += -include tests/cards/calls.h
$(call emulated,tests/cards/calls.c): EXTRA += -fno-sanitize=all
# The sanitizer sees of these what they tell it, and not their locks (tests/cards/machine.h).
ifeq ($(SAN),thread)
CARDS_UNSEEN  := $(call emulated,$(addprefix tests/cards/,sync.c machine.c failures.c streams.c turns.c events.c capture.c memory.c copies.c report.c nvml.c nccl_world.c nccl_item.c \
                   nccl_group.c nccl_comm.c) $(wildcard tests/gpu/emulator/*.cc))
$(CARDS_UNSEEN): EXTRA += -fno-sanitize=thread -DCARDS_THREAD_SANITIZER
endif
$(BUILD)/emulated/%.o: % $(BUILD)/flags.stamp Makefile
	@mkdir -p $(@D); $(call SHOW,emulate $<)
	$(Q)$(EMULATED) -Itests/gpu/emulator/include $(CPPFLAGS) -fPIC $(OPT) $(EXTRA) -MMD -MP -c -o $@ $<

$(BUILD)/evenload: | $(BUILD)/plots $(BUILD)/hardware $(BUILD)/hook
$(BUILD)/cards/evenload: | $(BUILD)/cards/plots $(BUILD)/cards/hardware $(BUILD)/cards/hook
$(PROGRAM_TESTS): | $(TEST_LINKS) $(BUILD)/plots $(BUILD)/hardware $(BUILD)/hook
$(BUILD)/plots: TO := $(UP)/plots
$(BUILD)/hardware: TO := $(UP)/profiles/hardware
$(BUILD)/hook: TO := $(UP)/profiles/hook
$(BUILD)/cards/plots $(BUILD)/cards/hardware $(BUILD)/cards/hook: TO = ../$(@F)
$(TEST_LINKS): TO = ../../$(@F)
$(BUILD)/tests/cards/modules: TO := ../../cards/modules
$(BUILD)/plots $(BUILD)/hardware $(BUILD)/hook $(BUILD)/cards/plots $(BUILD)/cards/hardware $(BUILD)/cards/hook $(TEST_LINKS):
	@mkdir -p $(@D); ln -sfn $(TO) $@

$(LIBRARY): $(OBJECTS)
	@$(call SHOW,ar     $@)
	$(Q)rm -f $@ && ar rcs $@ $^

# -rdynamic: modules use the program's own functions (status, clock).
$(BUILD)/evenload: $(BUILD)/bench/main.o $(LIBRARY)
	@$(call SHOW,link   $@)
	$(Q)$(CC) $(LDFLAGS) -rdynamic -o $@ $< $(WHOLE) $(LIBS)

$(BUILD)/modules/el_dnnl.so: $(DNNL_OBJECTS)
	@mkdir -p $(@D); $(call SHOW,module $@)
	$(Q)$(CC) $(LDFLAGS) -shared -o $@ $^ $(DNNL_LIBS)

$(BUILD)/modules/el_png.so: $(BUILD)/runtime/data/codec/png.o
	@mkdir -p $(@D); $(call SHOW,module $@)
	$(Q)$(CC) $(LDFLAGS) -shared -o $@ $^ $(PNG_LIBS)

$(BUILD)/modules/el_jpeg.so: $(BUILD)/runtime/data/codec/jpeg.o
	@mkdir -p $(@D); $(call SHOW,module $@)
	$(Q)$(CC) $(LDFLAGS) -shared -o $@ $^ $(JPEG_LIBS)

$(BUILD)/modules/el_mpi.so: $(MPI_OBJECTS)
	@mkdir -p $(@D); $(call SHOW,module $@)
	$(Q)$(MPICC) $(LDFLAGS) -shared -o $@ $^

$(BUILD)/modules/el_cuda.so: $(CUDA_OBJECTS)
	@mkdir -p $(@D); $(call SHOW,module $@)
	$(Q)$(CC) $(LDFLAGS) -shared -o $@ $^ $(CUDA_LIBS) -lstdc++ -ldl -lm

$(BUILD)/modules/el_cudnn.so: $(CUDNN_OBJECTS)
	@mkdir -p $(@D); $(call SHOW,module $@)
	$(Q)$(CC) $(LDFLAGS) -shared -o $@ $^ $(CUDNN_LIBS)

$(BUILD)/modules/el_nccl.so: $(NCCL_OBJECTS)
	@mkdir -p $(@D); $(call SHOW,module $@)
	$(Q)$(CC) $(LDFLAGS) -shared -o $@ $^ $(CUDART_LIBS) $(NCCL_LIBS) -ldl

$(BUILD)/modules/el_nvtx.so: $(NVTX_OBJECTS)
	@mkdir -p $(@D); $(call SHOW,module $@)
	$(Q)$(CC) $(LDFLAGS) -shared -o $@ $^ -ldl

$(PROFILER): $(PROFILER_OBJECTS)
	@mkdir -p $(@D); $(call SHOW,module $@)
	$(Q)$(CC) $(LDFLAGS) -shared $(if $(SAN),,-Wl$(comma)-z$(comma)defs) -o $@ $^
$(BUILD)/tests/unit/test_nccl_profiler: | $(PROFILER)

# A hundred programs are linked to it in a third of the time that each with a library of its own takes.
# No new tags: with a run path of its own (LDFLAGS) it would not look for the cards where its program does.
TEST_LIBRARY := $(BUILD)/libevenload.so
$(TEST_LIBRARY): $(LIBRARY)
	@$(call SHOW,link   $@)
	$(Q)$(CC) $(QUICK_LD) $(LDFLAGS) -shared -Wl,-soname,$(@F),--disable-new-dtags -o $@ $(WHOLE) $(LIBS)

# private: what they need, the library that they are linked to does not.
$(GPU_TESTS): private LIBS += $(CUDART_LIBS)
$(EMULATED_TEST): $(EMULATED_KERNELS) $(CARDS_CUDNN_OBJECTS) $(CARDS_LIBRARY_OBJECTS)
$(EMULATED_TEST): private LIBS += $(EMULATED_KERNELS) $(CARDS_CUDNN_OBJECTS) $(CARDS_LIBRARY_OBJECTS) -lstdc++
# They find the cards' modules, and what they ask the cards themselves.
$(EMULATED_TEST:=.o) $(CARDS_TESTS:=.o): private CPPFLAGS := -Itests/gpu/emulator/include $(CPPFLAGS)
$(CARDS_TESTS): $(CARDS_MODULES)
$(CARDS_TESTS): private LIBS += $(BUILD)/cards/lib/libfakecards.so -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/../../cards/lib'
$(TESTS): $(BUILD)/%: $(BUILD)/%.o $(TEST_SUPPORT) $(TEST_LIBRARY)
	@$(call SHOW,link   $@)
	$(Q)$(CC) $(QUICK_LD) $(LDFLAGS) -rdynamic -Wl,-rpath,'$$ORIGIN/../..' -o $@ $< $(TEST_SUPPORT) $(TEST_LIBRARY) $(CMOCKA_LIBS) $(LIBS)

# The program on cards that are none: a copy that looks for the driver's libraries beside itself.
$(BUILD)/cards/lib/libfakecards.so: $(CARDS_LIBRARY_OBJECTS)
	@mkdir -p $(@D); $(call SHOW,link   $@)
	$(Q)$(CC) $(LDFLAGS) -shared -Wl,-soname,$(@F) -o $@ $^ -lstdc++ -lm
	$(Q)for name in libcuda.so.1 libnvidia-ml.so.1; do ln -sf $(@F) $(@D)/$$name; done
$(BUILD)/cards/modules/el_cuda.so: $(CARDS_CUDA_OBJECTS)
$(BUILD)/cards/modules/el_cudnn.so: $(CARDS_CUDNN_OBJECTS)
$(BUILD)/cards/modules/el_nccl.so: $(CARDS_NCCL_OBJECTS)
$(addprefix $(BUILD)/cards/modules/,el_cuda.so el_cudnn.so el_nccl.so): $(BUILD)/cards/lib/libfakecards.so
	@mkdir -p $(@D); $(call SHOW,module $@)
	$(Q)$(CC) $(LDFLAGS) -shared -o $@ $(filter %.o,$^) -Wl,--no-as-needed $(filter %.so,$^) -Wl,--as-needed,-rpath,'$$ORIGIN/../lib' -lstdc++ -ldl -lm
$(BUILD)/cards/modules/%.so: $(BUILD)/modules/%.so
	@mkdir -p $(@D); ln -sf ../../modules/$(@F) $@
$(BUILD)/cards/evenload: $(BUILD)/bench/main.o $(LIBRARY) $(CARDS_MODULES)
	@$(call SHOW,link   $@)
	$(Q)$(CC) $(LDFLAGS) -rdynamic -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/lib' -o $@ $< $(WHOLE) $(LIBS)

# What NVTX loads in its test.
$(BUILD)/tests/cards/test_nvtx: | $(BUILD)/tests/cards/nvtx_injection.so
$(BUILD)/tests/cards/nvtx_injection.so: $(BUILD)/tests/injection/nvtx.o
	$(Q)$(CC) $(LDFLAGS) -shared -o $@ $<

# What the card can do at most, by CUDA's own calls: scripts/gpu-check runs it.
$(GPU_LIMITS): $(BUILD)/tests/gpu/limits.o $(BUILD)/kernels/cuda/check.o $(LIBRARY)
	@$(call SHOW,link   $@)
	$(Q)$(CC) $(LDFLAGS) -rdynamic -o $@ $(filter %.o,$^) $(WHOLE) $(CUDA_LIBS) $(LIBS)

FUZZ_LINK := $(CC) $(QUICK_LD) $(LDFLAGS) $(if $(filter fuzz,$(SAN)),-fsanitize=fuzzer)
$(FUZZ) $(BUILD)/tests/fuzz/injected: $(BUILD)/%: $(BUILD)/%.o $(FUZZ_OBJECTS) $(LIBRARY)
	@$(call SHOW,link   $@)
	$(Q)$(FUZZ_LINK) -rdynamic -o $@ $< $(FUZZ_OBJECTS) $(WHOLE) $(LIBS)

$(filter-out %/fuzz/injected,$(INJECTED)): $(BUILD)/%: $(BUILD)/%.o
	@$(call SHOW,link   $@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $<

-include $(patsubst %.o,%.d,$(OBJECTS) $(BUILD)/bench/main.o $(CODEC_OBJECTS) $(DNNL_OBJECTS) $(MPI_OBJECTS) $(CUDA_OBJECTS) $(CUDNN_OBJECTS) $(CARDS_CUDNN_OBJECTS) $(NCCL_OBJECTS) $(NVTX_OBJECTS) $(PROFILER_OBJECTS) $(CARDS_CUDA_OBJECTS) $(CARDS_NCCL_OBJECTS) $(CARDS_LIBRARY_OBJECTS) $(TEST_SUPPORT) $(TESTS:=.o) $(FUZZ:=.o) $(FUZZ_OBJECTS) $(GPU_LIMITS:=.o) $(INJECTED:=.o))
