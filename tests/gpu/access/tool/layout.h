// Where the parameters of the kernels of a cubin lie, from the sections .nv.info.<kernel>: attributes
// KPARAM_INFO (0x17) and KPARAM_INFO_V2 (0x45), as src/kernels/src/image/parameters.rs describes them.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

struct Parameter {
    uint32_t index, offset, size;
};
using Layouts = std::map<std::string, std::vector<Parameter>>;

inline std::vector<Parameter> parameters(const uint8_t *at, const uint8_t *end)
{
    std::vector<Parameter> found;
    while (end - at >= 4) {
        uint8_t format = at[0], code = at[1];
        uint16_t length = at[2] | at[3] << 8;
        const uint8_t *value = at + 4;
        at = value;
        if (format != 4)
            continue; // its value, if any, lies in the header
        if (length > end - value)
            break;
        at = value + length;
        if ((code != 0x17 && code != 0x45) || length < 12)
            continue;
        uint16_t index, offset;
        uint32_t word;
        memcpy(&index, value + 4, 2);
        memcpy(&offset, value + 6, 2);
        memcpy(&word, value + 8, 4);
        found.push_back({index, offset, code == 0x45 ? word & 0xffff : word >> 18});
    }
    return found;
}

// Empty where it is no ELF file of 64 bits or is damaged.
inline Layouts layouts(const uint8_t *image, size_t size)
{
    Layouts found;
    Elf64_Ehdr header;
    if (size < sizeof header)
        return found;
    memcpy(&header, image, sizeof header);
    auto inside = [&](uint64_t offset, uint64_t bytes) { return offset <= size && bytes <= size - offset; };
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64
        || header.e_shentsize != sizeof(Elf64_Shdr))
        return found;
    // More than 65,279 sections: the first one tells how many, and which holds the names.
    Elf64_Shdr first;
    if (!inside(header.e_shoff, sizeof first))
        return found;
    memcpy(&first, image + header.e_shoff, sizeof first);
    uint64_t count = header.e_shnum != 0 ? header.e_shnum : first.sh_size;
    uint64_t names_at = header.e_shstrndx != SHN_XINDEX ? header.e_shstrndx : first.sh_link;
    if (count > size / sizeof first || names_at >= count || !inside(header.e_shoff, count * sizeof first))
        return found;
    std::vector<Elf64_Shdr> sections(count);
    memcpy(sections.data(), image + header.e_shoff, count * sizeof first);
    const Elf64_Shdr &names = sections[names_at];
    if (!inside(names.sh_offset, names.sh_size) || names.sh_size == 0
        || image[names.sh_offset + names.sh_size - 1] != 0)
        return found;
    const std::string prefix = ".nv.info.";
    for (const Elf64_Shdr &section : sections) {
        if (section.sh_name >= names.sh_size || !inside(section.sh_offset, section.sh_size))
            continue;
        std::string name = (const char *)image + names.sh_offset + section.sh_name;
        if (name.compare(0, prefix.size(), prefix) == 0)
            found[name.substr(prefix.size())] = parameters(
                image + section.sh_offset, image + section.sh_offset + section.sh_size);
    }
    return found;
}
