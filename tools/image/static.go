package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// machine is what an ELF header says of an architecture.
type machine struct {
	elf   elf.Machine
	class elf.Class
	order binary.ByteOrder
}

// machines are Go's architectures of linux for which there are nodes.
var machines = map[string]machine{
	"amd64":   {elf.EM_X86_64, elf.ELFCLASS64, binary.LittleEndian},
	"arm":     {elf.EM_ARM, elf.ELFCLASS32, binary.LittleEndian},
	"arm64":   {elf.EM_AARCH64, elf.ELFCLASS64, binary.LittleEndian},
	"ppc64le": {elf.EM_PPC64, elf.ELFCLASS64, binary.LittleEndian},
	"riscv64": {elf.EM_RISCV, elf.ELFCLASS64, binary.LittleEndian},
	"s390x":   {elf.EM_S390, elf.ELFCLASS64, binary.BigEndian},
}

// checkStatic returns why an executable would not start in an image for linux/arch that has no C library.
func checkStatic(executable []byte, arch string) error {
	want, known := machines[arch]
	if !known {
		return fmt.Errorf("unknown architecture %q", arch)
	}
	f, err := elf.NewFile(bytes.NewReader(executable))
	if err != nil {
		return fmt.Errorf("no executable for linux: %w", err)
	}
	switch {
	case f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN:
		return errors.New("no executable: its ELF type is " + f.Type.String())
	case f.OSABI != elf.ELFOSABI_NONE && f.OSABI != elf.ELFOSABI_LINUX:
		return errors.New("no executable for linux: its ABI is " + f.OSABI.String())
	case f.Machine != want.elf || f.Class != want.class || f.ByteOrder != want.order:
		return fmt.Errorf("built for another machine than linux/%s: %s", arch, f.Machine)
	case slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }):
		return errors.New("linked dynamically: the image has no loader and no C library")
	}
	return nil
}
