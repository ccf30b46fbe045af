// Reads the ustar format (POSIX.1-1988): 512-byte blocks, a header block before each file's blocks.
#include <fmt/format.h>

#include <charconv>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

#include "published_files.hpp"

namespace dtrain::data {
namespace {

constexpr std::uint64_t kBlock = 512;

struct Field {
  std::size_t at, size;
};
constexpr Field kName{0, 100}, kSize{124, 12}, kChecksum{148, 8}, kType{156, 1}, kPrefix{345, 155}, kMagic{257, 5};

[[noreturn]] void fail(const SourceBytes& tar, std::uint64_t at, std::string_view why) {
  throw DataError(fmt::format("{}: tar: byte {}: {}", tar.name, at, why), "copy or download it again");
}

// A field's text up to its first zero byte.
std::string_view text_in(std::string_view block, Field field) {
  const std::string_view text = block.substr(field.at, field.size);
  return text.substr(0, text.find('\0'));
}

std::uint64_t octal_in(const SourceBytes& tar, std::uint64_t at, std::string_view block, Field field) {
  const std::string_view digits = trim(text_in(block, field));
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 8);
  if (error != std::errc() || end != digits.data() + digits.size()) fail(tar, at, "a damaged header");
  return value;
}

// The sum of the header's bytes, with its own field taken as spaces.
std::uint64_t checksum(std::string_view block) {
  std::uint64_t sum = ' ' * kChecksum.size;
  for (std::size_t i = 0; i < block.size(); ++i) {
    if (i < kChecksum.at || i >= kChecksum.at + kChecksum.size) sum += static_cast<unsigned char>(block[i]);
  }
  return sum;
}

std::string path_in(std::string_view block) {
  const std::string name(text_in(block, kName));
  const std::string prefix(text_in(block, kMagic) == "ustar" ? text_in(block, kPrefix) : "");
  return prefix.empty() ? name : prefix + "/" + name;
}

}  // namespace

SourceBytes file_in_tar(const SourceBytes& tar, std::string_view name) {
  const std::string_view bytes = text_of(tar.bytes);
  const std::uint64_t whole = bytes.size();
  for (std::uint64_t at = 0; at + kBlock <= whole;) {
    const std::string_view block = bytes.substr(at, kBlock);
    if (block[0] == '\0') break;  // the end is marked by blocks of zeros
    if (octal_in(tar, at, block, kChecksum) != checksum(block)) fail(tar, at, "a damaged header");
    const std::uint64_t size = octal_in(tar, at, block, kSize), content = at + kBlock;
    if (size > whole - content)
      fail(tar, at, fmt::format("{} has {} bytes, but the archive ends", path_in(block), size));
    const char type = block[kType.at];
    const bool regular = type == '0' || type == '\0';
    if (regular && Path(path_in(block)).filename() == name) {
      return {fmt::format("{}({})", tar.name, path_in(block)), tar.bytes.subspan(content, size), tar.owner};
    }
    at = content + (size + kBlock - 1) / kBlock * kBlock;
    if (at > whole) break;
  }
  throw DataError(fmt::format("{}: holds no {}", tar.name, name), "is it the right archive?");
}

}  // namespace dtrain::data
