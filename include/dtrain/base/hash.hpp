// SHA-256 (FIPS 180-4) for what must not change, HMAC (RFC 2104) for what must not be forged, XXH3 (xxhash.com) for
// what may be damaged on its way, CRC-32C (RFC 3720) where a file format asks for it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <dtrain/base/files.hpp>

namespace dtrain {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void update(ByteView bytes);
  // Lower-case hex. Call once, last.
  std::string hex();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

std::string sha256_hex(ByteView bytes);
// Lower-case hex, for formats that prescribe SHA-1. Not for security.
std::string sha1_hex(ByteView bytes);
// XXH3 of 128 bits, in canonical order: at the speed of memory, and no protection against malice.
using Xxh128 = std::array<std::byte, 16>;
Xxh128 xxh128(ByteView bytes);
// The 32 bytes of HMAC-SHA-256. Compare them with equal_secrets() of base/secret.hpp only.
std::string hmac_sha256(std::string_view key, std::string_view message);
// With the processor's instruction where it has one.
std::uint32_t crc32c(ByteView bytes);
// The same number without it.
std::uint32_t crc32c_portable(ByteView bytes);

}  // namespace dtrain
