#include <dtrain/base/hash.hpp>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>

#include <dtrain/base/error.hpp>
#include <dtrain/base/secret.hpp>

namespace dtrain {
namespace {

// OpenSSL loads what it needs on the first use, and fails where a limit leaves no memory for that.
void require_digest(bool done, const char* name) {
  if (done) return;
  throw Error(std::string("cannot compute ") + name + ": OpenSSL gives none, or memory has run out",
              "a limit on memory (ulimit -v, or of the container) may be too low");
}

}  // namespace

struct Sha256::Context {
  EVP_MD_CTX* md = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(md); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  require_digest(context_->md && EVP_DigestInit_ex(context_->md, EVP_sha256(), nullptr) == 1, "SHA-256");
}
Sha256::~Sha256() = default;

void Sha256::update(ByteView bytes) {
  require_digest(EVP_DigestUpdate(context_->md, bytes.data(), bytes.size()) == 1, "SHA-256");
}

std::string Sha256::hex() {
  std::string digest(32, '\0');
  auto* out = reinterpret_cast<unsigned char*>(digest.data());
  require_digest(EVP_DigestFinal_ex(context_->md, out, nullptr) == 1, "SHA-256");
  return to_hex(digest);
}

std::string sha256_hex(ByteView bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

std::string sha1_hex(ByteView bytes) {
  std::string digest(20, '\0');
  auto* out = reinterpret_cast<unsigned char*>(digest.data());
  require_digest(EVP_Digest(bytes.data(), bytes.size(), out, nullptr, EVP_sha1(), nullptr) == 1, "SHA-1");
  return to_hex(digest);
}

Xxh128 xxh128(ByteView bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  return std::bit_cast<Xxh128>(canonical);
}

std::string hmac_sha256(std::string_view key, std::string_view message) {
  std::string mac(32, '\0');
  const auto* data = reinterpret_cast<const unsigned char*>(message.data());
  auto* out = reinterpret_cast<unsigned char*>(mac.data());
  const auto* done = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), data, message.size(), out, nullptr);
  require_digest(done != nullptr, "HMAC-SHA-256");
  return mac;
}

}  // namespace dtrain
