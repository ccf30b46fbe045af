#include <dtrain/base/tar.hpp>

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <string_view>

#include <dtrain/base/error.hpp>

namespace dtrain {
namespace {

constexpr std::size_t kBlock = 512;
constexpr std::uint64_t kLargest = (std::uint64_t{1} << 33) - 1;  // eleven octal digits
using Block = std::array<char, kBlock>;

struct Field {
  std::size_t at, size;
};
constexpr Field kName{0, 100}, kMode{100, 8}, kOwner{108, 8}, kGroup{116, 8}, kSize{124, 12}, kTime{136, 12},
    kChecksum{148, 8}, kMagic{257, 8};
constexpr std::size_t kType = 156;

void put(Block& block, Field field, std::string_view text) {
  DTRAIN_CHECK(text.size() <= field.size, "a field of a tar header is long enough");
  std::memcpy(block.data() + field.at, text.data(), text.size());
}

void put_octal(Block& block, Field field, std::uint64_t number) {
  put(block, field, fmt::format("{:0{}o}", number, field.size - 1));
}

std::string block_of(std::string_view name, std::uint64_t size, unsigned mode, char type) {
  Block block{};
  put(block, kName, name);
  put_octal(block, kMode, mode);
  for (const Field field : {kOwner, kGroup, kTime}) put_octal(block, field, 0);
  put_octal(block, kSize, size);
  put(block, kMagic,
      std::string_view("ustar\0"
                       "00",
                       8));
  block[kType] = type;
  put(block, kChecksum, "        ");
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  put(block, kChecksum, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return {block.begin(), block.end()};
}

// "LENGTH key=value\n", where the length counts its own digits.
std::string pax_record(std::string_view key, std::string_view value) {
  const std::size_t rest = key.size() + value.size() + 3;
  std::size_t length = rest + 1;
  while (length != rest + std::to_string(length).size()) ++length;
  return fmt::format("{} {}={}\n", length, key, value);
}

}  // namespace

std::string tar_header(const TarFile& file) {
  const std::string name = file.name + (file.folder ? "/" : "");
  const bool long_name = name.size() > kName.size, large = file.size > kLargest;
  std::string records;
  if (long_name) records += pax_record("path", name);
  if (large) records += pax_record("size", std::to_string(file.size));
  std::string header;
  if (!records.empty()) header = block_of("pax", records.size(), 0644, 'x') + records + tar_padding(records.size());
  return header + block_of(std::string_view(name).substr(0, kName.size), large ? 0 : file.size, file.mode,
                           file.folder ? '5' : '0');
}

std::string tar_padding(std::uint64_t size) { return std::string((kBlock - size % kBlock) % kBlock, '\0'); }

std::string tar_end() { return std::string(2 * kBlock, '\0'); }

}  // namespace dtrain
