// SHA-256 (FIPS 180-4) for what must not change, HMAC (RFC 2104) for what must not be forged, CRC-32C (RFC 3720) where
// a file format asks for it.
#pragma once

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
// The 32 bytes of HMAC-SHA-256. Compare them with equal_secrets() of base/secret.hpp only.
std::string hmac_sha256(std::string_view key, std::string_view message);
// With the processor's instruction where it has one.
std::uint32_t crc32c(ByteView bytes);
// The same number without it.
std::uint32_t crc32c_portable(ByteView bytes);

}  // namespace dtrain
