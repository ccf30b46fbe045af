#include "tar_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::data {
namespace {

constexpr std::uint64_t kBlock = 512;
constexpr std::uint64_t kLongestName = 64 << 10;
constexpr const char* kMakeTarAgain = "copy it again, or make it again";

struct Field {
  std::size_t at, size;
};
constexpr Field kName{0, 100}, kSize{124, 12}, kChecksum{148, 8}, kType{156, 1}, kPrefix{345, 155}, kMagic{257, 5};

std::string_view text_in(std::string_view block, Field field) {
  const std::string_view text = block.substr(field.at, field.size);
  return text.substr(0, text.find('\0'));
}

class Header {
 public:
  Header(const std::string& source, std::uint64_t at, std::string_view block)
      : source_(source), at_(at), block_(block) {
    if (octal(kChecksum) != sum()) fail_as_damaged();
  }

  char type() const { return block_[kType.at]; }
  std::string name() const {
    const std::string_view name = text_in(block_, kName), prefix = text_in(block_, kPrefix);
    const bool has_prefix = text_in(block_, kMagic) == "ustar" && !prefix.empty();
    return has_prefix ? fmt::format("{}/{}", prefix, name) : std::string(name);
  }
  // Octal digits, or, as GNU writes sizes from 8 GiB on, the number itself behind a set first bit.
  std::uint64_t size() const {
    const std::string_view field = block_.substr(kSize.at, kSize.size);
    if (!(static_cast<unsigned char>(field[0]) & 0x80)) return octal(kSize);
    std::uint64_t value = 0;
    for (const char c : field.substr(4)) value = value << 8 | static_cast<unsigned char>(c);
    return value;
  }
  [[noreturn]] void fail(std::string_view why, const char* hint = kMakeTarAgain) const {
    throw DataError(fmt::format("{}: tar: byte {}: {}", source_, at_, why), hint);
  }

 private:
  // Any file that is no archive has no header at its beginning.
  [[noreturn]] void fail_as_damaged() const {
    if (at_ > 0) fail("a damaged header");
    throw DataError(fmt::format("{}: is no tar or zip archive, or one whose first header is damaged", source_),
                    "copy it again if it is one; `dtrain data ls` and `dtrain data show` read record files");
  }
  std::uint64_t octal(Field field) const {
    const std::string_view digits = trim(text_in(block_, field));
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 8);
    if (error != std::errc() || end != digits.data() + digits.size()) fail_as_damaged();
    return value;
  }
  // The sum of the header's bytes, with its own field taken as spaces.
  std::uint64_t sum() const {
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < block_.size(); ++i) {
      const bool own = i >= kChecksum.at && i < kChecksum.at + kChecksum.size;
      total += own ? ' ' : static_cast<unsigned char>(block_[i]);
    }
    return total;
  }

  const std::string& source_;
  std::uint64_t at_;
  std::string_view block_;
};

[[noreturn]] void refuse_end(const std::string& source, std::string_view where, std::uint64_t size) {
  throw DataError(fmt::format("{}: tar: ends {}, at byte {}", source, where, size), kMakeTarAgain);
}

// What pax's records say about the next entry: lines "LENGTH key=value\n".
void take_pax(std::string_view records, std::string& name, std::optional<std::uint64_t>& size) {
  while (!records.empty()) {
    const std::size_t space = records.find(' ');
    const auto length = parse_integer(records.substr(0, space));
    if (!length || *length <= 0 || static_cast<std::size_t>(*length) > records.size()) return;
    const std::string_view record = records.substr(space + 1, static_cast<std::size_t>(*length) - space - 2);
    if (record.starts_with("path=")) name = record.substr(5);
    if (record.starts_with("size=")) {
      if (const auto value = parse_integer(record.substr(5)); value && *value >= 0) {
        size = static_cast<std::uint64_t>(*value);
      }
    }
    records.remove_prefix(static_cast<std::size_t>(*length));
  }
}

}  // namespace

std::optional<TarEntry> next_tar_entry(const std::string& source, std::uint64_t size, std::uint64_t offset,
                                       const TarRead& read) {
  std::string long_name;
  std::optional<std::uint64_t> long_size;
  const std::uint64_t begin = offset;
  for (std::string block(kBlock, '\0'); offset < size;) {
    if (size - offset < kBlock) refuse_end(source, "inside a header", size);
    read(offset, std::as_writable_bytes(std::span(block)));
    if (block.find_first_not_of('\0') == block.npos) return std::nullopt;  // the end mark
    const Header header(source, offset, block);
    TarEntry entry{.name = long_name.empty() ? header.name() : long_name,
                   .size = long_size.value_or(header.size()),
                   .content = offset + kBlock};
    if (entry.size > size - entry.content) header.fail(fmt::format("{} is longer than the archive", entry.name));
    entry.end = entry.content + (entry.size + kBlock - 1) / kBlock * kBlock;
    const char type = header.type();
    if (type == '0' || type == '\0' || type == '7') return entry;
    if (type == '5') {
      entry.folder = true;
      return entry;
    }
    if (type != 'L' && type != 'x' && type != 'g') {
      header.fail(fmt::format("{} is a link or a device", entry.name),
                  "make the archive again with the files instead of the links: tar -c -h --hard-dereference");
    }
    if (entry.size > kLongestName) header.fail("a name is too long");
    std::string text(entry.size, '\0');
    read(entry.content, std::as_writable_bytes(std::span(text)));
    if (type == 'L') long_name = text.substr(0, text.find('\0'));
    if (type == 'x') take_pax(text, long_name, long_size);
    offset = entry.end;
  }
  if (offset != begin) refuse_end(source, "before the file that its last header describes", size);
  return std::nullopt;
}

}  // namespace dtrain::data
