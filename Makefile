# evenload: one Makefile. `make` builds build/evenload and its modules, `make check` the tests' programs; `make help` says the rest.
#
# It probes by compiling and prints what it found and what it left out. Settings: V=1 (show commands), BUILD=dir,
# SAN=address|thread (sanitizers), PREFIX=dir (look for libraries there too), WERROR= (do not stop at warnings), DNNL=0, MPI=0.

BUILD  ?= build
CC     ?= cc
MPICC  ?= mpicc
WERROR ?= -Werror
PKG    := $(if $(PREFIX),PKG_CONFIG_PATH=$(PREFIX)/lib/pkgconfig:$(PREFIX)/share/pkgconfig:$$PKG_CONFIG_PATH )pkg-config
Q      := $(if $(V),,@)

WARN   := -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2 $(WERROR)
OPT    := -O2 -g
ifeq ($(SAN),address)
OPT    := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
else ifeq ($(SAN),thread)
OPT    := -O1 -g -fsanitize=thread -fno-omit-frame-pointer
else ifneq ($(SAN),)
$(error SAN must be address or thread, not '$(SAN)')
endif
CPPFLAGS += -I. -D_GNU_SOURCE -DEL_BUILD_COMMIT='"$(COMMIT)"' $(if $(PREFIX),-I$(PREFIX)/include)
CFLAGS   += -std=c11 -pthread -fPIC $(OPT) $(WARN) -MMD -MP
LDFLAGS  += -pthread $(OPT) $(if $(PREFIX),-L$(PREFIX)/lib -Wl$(comma)-rpath$(comma)$(PREFIX)/lib)
comma    := ,
COMMIT   := $(shell git describe --always --dirty --abbrev=12 2>/dev/null || echo unknown)

# Probes. Each answers yes or nothing, by compiling.
probe = $(shell printf '%s\n' $(1) > /tmp/el-probe-$$$$.c; $(2) $(CPPFLAGS) $(LDFLAGS) -o /tmp/el-probe-$$$$ /tmp/el-probe-$$$$.c $(3) >/dev/null 2>&1 && echo yes; rm -f /tmp/el-probe-$$$$ /tmp/el-probe-$$$$.c)
ifeq ($(filter clean help format,$(MAKECMDGOALS)),)
HAVE_JANSSON := $(call probe,'\#include <jansson.h>' 'int main(void){return json_object()==0;}',$(CC),-ljansson)
HAVE_DNNL    := $(if $(filter 0,$(DNNL)),,$(call probe,'\#include <oneapi/dnnl/dnnl.h>' 'int main(void){return dnnl_version()==0;}',$(CC),-ldnnl))
HAVE_MPI     := $(if $(filter 0,$(MPI)),,$(call probe,'\#include <mpi.h>' 'int main(void){return MPI_Init(0,0);}',$(MPICC),))
HAVE_CMOCKA  := $(call probe,'\#include <stdarg.h>' '\#include <stddef.h>' '\#include <setjmp.h>' '\#include <stdint.h>' '\#include <cmocka.h>' 'int main(void){return 0;}',$(CC),-lcmocka)
endif

MODULE_SOURCES := $(wildcard kernels/cpu/dnnl/*.c runtime/comm/mpi/*.c)
SOURCES := $(filter-out $(MODULE_SOURCES),$(wildcard kernels/*.c kernels/*/*.c runtime/*/*.c profiles/*.c bench/*.c))
LIBRARY_SOURCES := $(filter-out bench/main.c,$(SOURCES))
LIBRARY  := $(BUILD)/libevenload.a
MODULES  := $(if $(HAVE_DNNL),$(BUILD)/modules/el_dnnl.so) $(if $(HAVE_MPI),$(BUILD)/modules/el_mpi.so)
TEST_SOURCES := $(wildcard tests/unit/*.c tests/conformance/*.c tests/equivalence/*.c)
TESTS    := $(if $(HAVE_CMOCKA),$(TEST_SOURCES:%.c=$(BUILD)/%))
LIBS     := -ljansson -ldl -lm

.PHONY: all check clean help format report
all: report $(BUILD)/evenload $(MODULES)

report:
	@echo "evenload $(COMMIT)"
	@echo "  jansson  $(or $(HAVE_JANSSON),NO: install libjansson-dev; nothing can be built without it)"
	@echo "  oneDNN   $(or $(HAVE_DNNL),no: convolutions and matrix work run on the plain C reference (install libdnnl-dev))"
	@echo "  MPI      $(or $(HAVE_MPI),no: ddp runs with --procs 1 only (install libopenmpi-dev openmpi-bin))"
	@echo "  cmocka   $(or $(HAVE_CMOCKA),no: the tests are left out (install libcmocka-dev))"
	@$(if $(HAVE_JANSSON),true,exit 2)

check: all $(TESTS)

help:
	@echo "make            build/evenload and its modules"
	@echo "make check      the tests' programs too (scripts/test runs them)"
	@echo "make format     clang-format over all sources"
	@echo "make clean      removes $(BUILD)"
	@echo "settings: V=1 BUILD=dir SAN=address|thread PREFIX=dir WERROR= DNNL=0 MPI=0 CC=cc MPICC=mpicc"

format:
	$(Q)clang-format -i $$(git ls-files '*.c' '*.h')

clean:
	$(Q)rm -rf $(BUILD)

# The reference kernels are the truth: no contraction, no fast-math. The fast ones may use the machine they are built on.
$(BUILD)/kernels/reference/%.o: CFLAGS += -ffp-contract=off
$(BUILD)/kernels/cpu/%.o: CFLAGS += -O3 -march=native -fno-math-errno -fno-trapping-math

$(BUILD)/%.o: %.c Makefile
	$(Q)mkdir -p $(@D)
	$(if $(V),,@echo "  cc     $<")
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

$(BUILD)/runtime/comm/mpi/%.o: runtime/comm/mpi/%.c Makefile
	$(Q)mkdir -p $(@D)
	$(if $(V),,@echo "  mpicc  $<")
	$(Q)$(MPICC) $(CPPFLAGS) $(CFLAGS) -Wno-cast-function-type -c -o $@ $<

$(LIBRARY): $(LIBRARY_SOURCES:%.c=$(BUILD)/%.o)
	$(if $(V),,@echo "  ar     $@")
	$(Q)rm -f $@ && ar rcs $@ $^

# -rdynamic: modules use the program's own functions (status, clock).
$(BUILD)/evenload: $(BUILD)/bench/main.o $(LIBRARY)
	$(if $(V),,@echo "  link   $@")
	$(Q)$(CC) $(LDFLAGS) -rdynamic -o $@ $< -Wl,--whole-archive $(LIBRARY) -Wl,--no-whole-archive $(LIBS)

$(BUILD)/modules/el_dnnl.so: $(patsubst %.c,$(BUILD)/%.o,$(wildcard kernels/cpu/dnnl/*.c))
	$(Q)mkdir -p $(@D)
	$(if $(V),,@echo "  module $@")
	$(Q)$(CC) $(LDFLAGS) -shared -o $@ $^ -ldnnl

$(BUILD)/modules/el_mpi.so: $(patsubst %.c,$(BUILD)/%.o,$(wildcard runtime/comm/mpi/*.c))
	$(Q)mkdir -p $(@D)
	$(if $(V),,@echo "  module $@")
	$(Q)$(MPICC) $(LDFLAGS) -shared -o $@ $^

$(BUILD)/tests/%: $(BUILD)/tests/%.o $(LIBRARY)
	$(if $(V),,@echo "  link   $@")
	$(Q)$(CC) $(LDFLAGS) -rdynamic -o $@ $< -Wl,--whole-archive $(LIBRARY) -Wl,--no-whole-archive -lcmocka $(LIBS)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
