#include <dtrain/base/sealed.hpp>

#include <openssl/evp.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/base/releaser.hpp>
#include <dtrain/base/secret.hpp>

namespace dtrain {
namespace {

constexpr std::size_t kKeyBytes = 32, kNonceBytes = 12, kTagBytes = 16;
constexpr std::string_view kPurpose = "dtrain sealed 1";

using Key = std::unique_ptr<EVP_PKEY, Releaser<EVP_PKEY_free>>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, Releaser<EVP_PKEY_CTX_free>>;
using Cipher = std::unique_ptr<EVP_CIPHER_CTX, Releaser<EVP_CIPHER_CTX_free>>;

unsigned char* bytes(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }
const unsigned char* bytes(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

std::string from_hex(std::string_view text) {
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  std::string found;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    const int high = digit(text[i]), low = digit(text[i + 1]);
    if (high < 0 || low < 0) throw DataError("a sealed secret is damaged");
    found.push_back(static_cast<char>(high * 16 + low));
  }
  return found;
}

void require(bool worked) {
  if (!worked) throw DataError("a secret was not sealed for this machine, or is damaged");
}

// The same for both sides: of what they agreed on, and of who they are.
std::string key_between(EVP_PKEY* own, const std::string& others, std::string first, std::string second) {
  const std::string raw = from_hex(others);
  const Key other(EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr, bytes(raw), raw.size()));
  const KeyContext context(EVP_PKEY_CTX_new(own, nullptr));
  std::string shared(kKeyBytes, '\0');
  std::size_t size = shared.size();
  require(other && context && EVP_PKEY_derive_init(context.get()) == 1 &&
          EVP_PKEY_derive_set_peer(context.get(), other.get()) == 1 &&
          EVP_PKEY_derive(context.get(), bytes(shared), &size) == 1 && size == kKeyBytes);
  return hmac_sha256(shared, std::string(kPurpose) + first + second);
}

}  // namespace

struct KeyHalf::State {
  Key key;
};

KeyHalf::KeyHalf() : state_(std::make_unique<State>()) {
  const std::string secret = unpredictable_bytes(kKeyBytes);
  state_->key.reset(EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr, bytes(secret), secret.size()));
  if (!state_->key) throw Error("this machine's OpenSSL has no X25519");
}

KeyHalf::~KeyHalf() = default;

std::string KeyHalf::public_part() const {
  std::string raw(kKeyBytes, '\0');
  std::size_t size = raw.size();
  require(EVP_PKEY_get_raw_public_key(state_->key.get(), bytes(raw), &size) == 1);
  return to_hex(raw);
}

std::string KeyHalf::seal(std::string_view secret, const std::string& others_public_part) const {
  const std::string key = key_between(state_->key.get(), others_public_part, public_part(), others_public_part);
  std::string nonce = unpredictable_bytes(kNonceBytes), hidden(secret.size(), '\0'), tag(kTagBytes, '\0');
  const Cipher cipher(EVP_CIPHER_CTX_new());
  int size = 0;
  require(cipher && EVP_EncryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, bytes(key), bytes(nonce)) == 1 &&
          EVP_EncryptUpdate(cipher.get(), bytes(hidden), &size, bytes(secret), static_cast<int>(secret.size())) == 1 &&
          EVP_EncryptFinal_ex(cipher.get(), bytes(hidden) + size, &size) == 1 &&
          EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes, tag.data()) == 1);
  return to_hex(nonce + tag + hidden);
}

std::string KeyHalf::open(const std::string& sealed, const std::string& others_public_part) const {
  const std::string key = key_between(state_->key.get(), others_public_part, others_public_part, public_part());
  std::string raw = from_hex(sealed);
  require(raw.size() >= kNonceBytes + kTagBytes);
  std::string tag = raw.substr(kNonceBytes, kTagBytes), hidden = raw.substr(kNonceBytes + kTagBytes);
  std::string secret(hidden.size(), '\0');
  const Cipher cipher(EVP_CIPHER_CTX_new());
  int size = 0;
  require(cipher && EVP_DecryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, bytes(key), bytes(raw)) == 1 &&
          EVP_DecryptUpdate(cipher.get(), bytes(secret), &size, bytes(hidden), static_cast<int>(hidden.size())) == 1 &&
          EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes, tag.data()) == 1 &&
          EVP_DecryptFinal_ex(cipher.get(), bytes(secret) + size, &size) == 1);
  return secret;
}

}  // namespace dtrain
