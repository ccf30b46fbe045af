#include <dtrain/base/gcm.hpp>

#include <openssl/evp.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/releaser.hpp>

namespace dtrain {
namespace {

using CipherHandle = std::unique_ptr<EVP_CIPHER_CTX, Releaser<::EVP_CIPHER_CTX_free>>;

const unsigned char* bytes(const void* data) { return static_cast<const unsigned char*>(data); }
unsigned char* bytes(void* data) { return static_cast<unsigned char*>(data); }

CipherHandle make_cipher(std::span<const std::byte, kGcmKeySize> key, int encrypts) {
  CipherHandle cipher(EVP_CIPHER_CTX_new());
  if (!cipher ||
      EVP_CipherInit_ex2(cipher.get(), EVP_aes_128_gcm(), bytes(key.data()), nullptr, encrypts, nullptr) != 1) {
    throw Error(
        "OpenSSL has no AES-128-GCM",
        "its configuration may load no provider that has it: unset OPENSSL_CONF, or start the default provider");
  }
  return cipher;
}

}  // namespace

struct GcmKey::State {
  CipherHandle sealing, opening;
};

GcmKey::GcmKey(std::span<const std::byte, kGcmKeySize> key)
    : state_(std::make_unique<State>(State{make_cipher(key, 1), make_cipher(key, 0)})) {}
GcmKey::~GcmKey() = default;
GcmKey::GcmKey(GcmKey&&) noexcept = default;
GcmKey& GcmKey::operator=(GcmKey&&) noexcept = default;

void GcmKey::seal(const GcmNonce& nonce, ByteView associated, std::span<const iovec> parts, std::byte* out) {
  EVP_CIPHER_CTX* const cipher = state_->sealing.get();
  int size = 0;
  bool done =
      EVP_EncryptInit_ex2(cipher, nullptr, nullptr, bytes(nonce.data()), nullptr) == 1 &&
      EVP_EncryptUpdate(cipher, nullptr, &size, bytes(associated.data()), static_cast<int>(associated.size())) == 1;
  for (const iovec& part : parts) {
    done =
        done && EVP_EncryptUpdate(cipher, bytes(out), &size, bytes(part.iov_base), static_cast<int>(part.iov_len)) == 1;
    out += part.iov_len;
  }
  done = done && EVP_EncryptFinal_ex(cipher, bytes(out), &size) == 1 &&
         EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, kGcmTagSize, out) == 1;
  DTRAIN_CHECK(done, "OpenSSL does not encrypt");
}

bool GcmKey::open(const GcmNonce& nonce, ByteView associated, ByteView sealed, std::byte* out) {
  EVP_CIPHER_CTX* const cipher = state_->opening.get();
  const std::size_t size = sealed.size() - kGcmTagSize;
  auto* const tag = const_cast<std::byte*>(sealed.data() + size);
  int got = 0;
  const bool done =
      EVP_DecryptInit_ex2(cipher, nullptr, nullptr, bytes(nonce.data()), nullptr) == 1 &&
      EVP_DecryptUpdate(cipher, nullptr, &got, bytes(associated.data()), static_cast<int>(associated.size())) == 1 &&
      EVP_DecryptUpdate(cipher, bytes(out), &got, bytes(sealed.data()), static_cast<int>(size)) == 1 &&
      EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, kGcmTagSize, tag) == 1;
  return done && EVP_DecryptFinal_ex(cipher, bytes(out), &got) == 1;
}

}  // namespace dtrain
