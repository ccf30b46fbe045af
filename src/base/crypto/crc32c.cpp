#include <array>
#include <cstring>

#include <dtrain/base/hash.hpp>

namespace dtrain {
namespace {

// table[0] is the plain bytewise table; table[k][b] is what byte b does to the remainder k bytes further on, so eight
// bytes need eight independent look-ups (Kounavis and Berry 2005, "slicing-by-8").
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1u) ? 0x82f63b78u : 0u);
    tables[0][byte] = value;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[k - 1][byte];
      tables[k][byte] = tables[0][before & 0xffu] ^ (before >> 8);
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

std::uint64_t load_word(const std::byte* from) {
  std::uint64_t word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

std::uint32_t update_portably(std::uint32_t crc, ByteView bytes) {
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    const std::uint64_t word = load_word(bytes.data()) ^ crc;
    crc = 0;
    for (std::size_t i = 0; i < 8; ++i) crc ^= kTables[7 - i][(word >> (8 * i)) & 0xffu];
  }
  for (std::byte byte : bytes) crc = kTables[0][(crc ^ static_cast<std::uint32_t>(byte)) & 0xffu] ^ (crc >> 8);
  return crc;
}

#if defined(__x86_64__)
bool has_instruction() { return __builtin_cpu_supports("sse4.2"); }

__attribute__((target("sse4.2"))) std::uint32_t update_by_instruction(std::uint32_t crc, ByteView bytes) {
  std::uint64_t wide = crc;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) wide = __builtin_ia32_crc32di(wide, load_word(bytes.data()));
  crc = static_cast<std::uint32_t>(wide);
  for (std::byte byte : bytes) crc = __builtin_ia32_crc32qi(crc, static_cast<unsigned char>(byte));
  return crc;
}
#else
bool has_instruction() { return false; }
std::uint32_t update_by_instruction(std::uint32_t crc, ByteView bytes) { return update_portably(crc, bytes); }
#endif

}  // namespace

std::uint32_t crc32c(ByteView bytes) {
  return ~(has_instruction() ? update_by_instruction(~0u, bytes) : update_portably(~0u, bytes));
}

std::uint32_t crc32c_portable(ByteView bytes) { return ~update_portably(~0u, bytes); }

}  // namespace dtrain
