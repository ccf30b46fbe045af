// Little-endian numbers and pieces of a file, one after the other; every read is checked against what is left.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>

namespace dtrain::train {

static_assert(std::endian::native == std::endian::little, "numbers are read as they lie in memory");

class ByteReader {
 public:
  // `source` names the file in messages, and `hint` says what may be wrong with it; both are borrowed.
  ByteReader(ByteView file, std::string_view source, const char* hint)
      : rest_(file), size_(file.size()), source_(source), hint_(hint) {}

  [[noreturn]] void fail(std::string_view what) const {
    throw DataError(fmt::format("{}: byte {}: {}", source_, position(), what), hint_);
  }

  ByteView take(std::uint64_t bytes) {
    if (bytes > rest_.size()) fail(fmt::format("{} more bytes expected, {} are left", bytes, rest_.size()));
    const ByteView taken = rest_.first(bytes);
    rest_ = rest_.subspan(bytes);
    return taken;
  }

  // Up to the end of the line, which is taken too.
  std::string_view line() {
    const std::size_t length = text_of(rest_).find('\n');
    if (length == std::string_view::npos) fail("a line without an end");
    const std::string_view text = text_of(take(length));
    take(1);
    return text;
  }

  template <typename Number>
  Number number() {
    Number value;
    std::memcpy(&value, take(sizeof(Number)).data(), sizeof(Number));
    return value;
  }

  // A count of things of at least `bytes_each` bytes, so that it cannot ask for more memory than the file deserves.
  std::uint64_t count(std::uint64_t bytes_each) {
    const auto value = number<std::uint64_t>();
    if (value > rest_.size() / bytes_each) fail(fmt::format("a count of {} does not fit the file", value));
    return value;
  }

  std::size_t position() const { return size_ - rest_.size(); }
  bool done() const { return rest_.empty(); }

 private:
  ByteView rest_;
  std::size_t size_;
  std::string_view source_;
  const char* hint_;
};

}  // namespace dtrain::train
