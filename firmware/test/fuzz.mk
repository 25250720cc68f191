# Fuzzing of the codec and of a whole board with libFuzzer; included by the Makefile above, paths are from there.
#   make fuzz                      a short run of every target
#   make fuzz FUZZ_RUNS=3000000    as many inputs each; of the board FUZZ_DEVICE_RUNS

FUZZ_CC ?= clang
FUZZ_RUNS ?= 200000
FUZZ_DEVICE_RUNS ?= 20000
FUZZ_SEED ?= 1
FUZZERS := stream messages cobs
FUZZ_CORE := core/protocol.c core/cobs.c core/crc32.c core/frame.c
FUZZ_FLAGS := -std=c11 -g -O1 -Wall -Wextra -Wconversion -Wshadow -Wpedantic -Werror \
	-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all

.PHONY: fuzz fuzz-device $(FUZZERS:%=fuzz-%)
fuzz: $(FUZZERS:%=fuzz-%) fuzz-device ## libFuzzer on codec and board, needs clang

$(FUZZERS:%=fuzz-%): fuzz-%: $(BUILD)/fuzz/%
	@mkdir -p $(BUILD)/fuzz/corpus-$*
	$< -runs=$(FUZZ_RUNS) -seed=$(FUZZ_SEED) -max_len=1100 -verbosity=0 -print_final_stats=1 \
		-artifact_prefix=$(BUILD)/fuzz/ $(BUILD)/fuzz/corpus-$*

$(BUILD)/fuzz/%: test/fuzz_%.c test/repack.h $(FUZZ_CORE) $(wildcard core/*.h)
	@mkdir -p $(@D)
	$(FUZZ_CC) $(FUZZ_FLAGS) $< $(FUZZ_CORE) -o $@

fuzz-device: $(BUILD)/fuzz/device
	@mkdir -p $(BUILD)/fuzz/corpus-device
	$< -runs=$(FUZZ_DEVICE_RUNS) -seed=$(FUZZ_SEED) -max_len=600 -verbosity=0 \
		-print_final_stats=1 -artifact_prefix=$(BUILD)/fuzz/ $(BUILD)/fuzz/corpus-device

$(BUILD)/fuzz/device: test/fuzz_device.c test/native_device.c $(wildcard core/*.[ch])
	@mkdir -p $(@D)
	$(FUZZ_CC) -fsanitize=float-divide-by-zero,float-cast-overflow $(FUZZ_FLAGS) $< \
		$(sort $(wildcard core/*.c)) -lm -o $@
