# STM32F405: cross-compiled image. `make stm32` builds it, `make stm32-size` reports its memory.
# Needs gcc-arm-none-eabi and libnewlib-arm-none-eabi. HOST_BAUDRATE=2000000 for a fast USB bridge.

ARM ?= arm-none-eabi-
STM32_DIR := boards/stm32f405
STM32_OUT := $(BUILD)/stm32f405
STM32_SOURCES := $(sort $(wildcard core/*.c) $(wildcard $(STM32_DIR)/*.c))
STM32_OBJECTS := $(STM32_SOURCES:%.c=$(STM32_OUT)/%.o)
STM32_IMAGE := $(STM32_OUT)/cards_muscle_board
STM32_FLAGS := -mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard \
	-std=gnu11 -O2 -g -ffreestanding -ffunction-sections -fdata-sections -fno-common -fstack-usage \
	$(WARNINGS) \
	-ffile-prefix-map=$(CURDIR)=firmware -Icore -I$(STM32_DIR)
STM32_LINK := -nostartfiles -specs=nano.specs -Wl,--gc-sections -Wl,--fatal-warnings \
	-Wl,-Map=$(STM32_IMAGE).map -T $(STM32_DIR)/stm32f405.ld
ifdef HOST_BAUDRATE
STM32_FLAGS += -DHOST_BAUDRATE=$(HOST_BAUDRATE)UL
endif

ifdef DRIVE_BAUDRATE
STM32_FLAGS += -DDRIVE_BAUDRATE=$(DRIVE_BAUDRATE)UL
endif

.PHONY: stm32 stm32-size
stm32: $(STM32_IMAGE).elf $(STM32_IMAGE).bin ## image for the STM32F405, .elf and .bin

$(STM32_OUT)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  $<"
	@$(ARM)gcc $(STM32_FLAGS) -MMD -MP -c $< -o $@

$(STM32_IMAGE).elf: $(STM32_OBJECTS) $(STM32_DIR)/stm32f405.ld
	@echo "  $@"
	@$(ARM)gcc $(STM32_FLAGS) $(STM32_OBJECTS) $(STM32_LINK) -lm -o $@

$(STM32_IMAGE).bin: $(STM32_IMAGE).elf
	@$(ARM)objcopy -O binary $< $@

stm32-size: $(STM32_IMAGE).elf ## memory that it needs
	@$(ARM)size $<
	@echo "largest stack frames [bytes]:"
	@cat $(STM32_OBJECTS:.o=.su) | sort -t'	' -k2 -n -r | head -8

-include $(STM32_OBJECTS:.o=.d)
