// The fields of an SFTP packet: big-endian numbers, and texts with their length in front; and what replies hold.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/net/ssh.hpp>

namespace dtrain::net::ssh {

class Packer {
 public:
  Packer& byte(std::uint8_t value) { return number(value, 1); }
  Packer& u32(std::uint32_t value) { return number(value, 4); }
  Packer& u64(std::uint64_t value) { return number(value, 8); }
  Packer& raw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  Packer& text(std::string_view bytes) { return u32(static_cast<std::uint32_t>(bytes.size())).raw(bytes); }
  const std::string& bytes() const { return bytes_; }

 private:
  Packer& number(std::uint64_t value, int size) {
    for (int shift = 8 * (size - 1); shift >= 0; shift -= 8) bytes_ += static_cast<char>(value >> shift & 0xff);
    return *this;
  }
  std::string bytes_;
};

// Borrows its bytes. RemoteError when they end too early.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : left_(bytes) {}
  bool empty() const { return left_.empty(); }
  std::uint8_t byte() { return static_cast<std::uint8_t>(number(1)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
  std::uint64_t u64() { return number(8); }
  std::string_view text() { return take(u32()); }

 private:
  std::uint64_t number(std::size_t size) {
    std::uint64_t value = 0;
    for (const char c : take(size)) value = value << 8 | static_cast<unsigned char>(c);
    return value;
  }
  std::string_view take(std::size_t size) {
    if (size > left_.size()) throw RemoteError("an SFTP packet ends in the middle of a field");
    const std::string_view taken = left_.substr(0, size);
    left_.remove_prefix(size);
    return taken;
  }
  std::string_view left_;
};

enum Attribute : std::uint32_t { kHasSize = 1, kHasOwner = 2, kHasMode = 4, kHasTimes = 8, kHasMore = 0x80000000 };

// The bodies of replies; RemoteError when they end too early. A file without its name:
SshFile parse_attributes(std::string_view body);
// The files of a folder, with . and ..
std::vector<SshFile> parse_names(std::string_view body);

}  // namespace dtrain::net::ssh
