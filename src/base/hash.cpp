#include <dtrain/base/hash.hpp>

#include <openssl/evp.h>

#include <array>

#include <dtrain/base/error.hpp>

namespace dtrain {
namespace {

constexpr std::array<std::uint32_t, 256> make_crc32c_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1u) ? 0x82f63b78u : 0u);
    table[i] = value;
  }
  return table;
}

}  // namespace

struct Sha256::Context {
  EVP_MD_CTX* md = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(md); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  DTRAIN_CHECK(EVP_DigestInit_ex(context_->md, EVP_sha256(), nullptr) == 1, "OpenSSL has no SHA-256");
}
Sha256::~Sha256() = default;

void Sha256::update(ByteView bytes) { EVP_DigestUpdate(context_->md, bytes.data(), bytes.size()); }

std::string Sha256::hex() {
  std::array<unsigned char, 32> digest{};
  EVP_DigestFinal_ex(context_->md, digest.data(), nullptr);
  std::string text;
  for (unsigned char byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::string sha256_hex(ByteView bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

std::uint32_t crc32c(ByteView bytes) {
  static constexpr std::array<std::uint32_t, 256> table = make_crc32c_table();
  std::uint32_t crc = 0xffffffffu;
  for (std::byte byte : bytes) crc = table[(crc ^ static_cast<std::uint32_t>(byte)) & 0xffu] ^ (crc >> 8);
  return crc ^ 0xffffffffu;
}

}  // namespace dtrain
