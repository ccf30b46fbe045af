#include <dtrain/base/gcm.hpp>

#include <intel-ipsec-mb.h>
#include <openssl/crypto.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/releaser.hpp>

namespace dtrain {
namespace {

using ManagerHandle = std::unique_ptr<IMB_MGR, Releaser<::free_mb_mgr>>;

ManagerHandle make_manager() {
  ManagerHandle manager(::alloc_mb_mgr(0));
  if (!manager) throw Error("Intel's Multi-Buffer Crypto cannot begin");
  ::init_mb_mgr_auto(manager.get(), nullptr);
  return manager;
}

// The functions for this processor; they keep nothing between calls.
IMB_MGR* functions() {
  static const ManagerHandle manager = make_manager();
  return manager.get();
}

const unsigned char* bytes(const void* data) { return static_cast<const unsigned char*>(data); }
unsigned char* bytes(void* data) { return static_cast<unsigned char*>(data); }

}  // namespace

struct GcmKey::State {
  gcm_key_data key;
  gcm_context_data context;
  ~State() { ::OPENSSL_cleanse(this, sizeof *this); }
};

GcmKey::GcmKey(std::span<const std::byte, kGcmKeySize> key) : state_(std::make_unique<State>()) {
  IMB_AES128_GCM_PRE(functions(), key.data(), &state_->key);
}
GcmKey::~GcmKey() = default;
GcmKey::GcmKey(GcmKey&&) noexcept = default;
GcmKey& GcmKey::operator=(GcmKey&&) noexcept = default;

void GcmKey::seal(const GcmNonce& nonce, ByteView associated, std::span<const iovec> parts, std::byte* out) {
  IMB_MGR* const with = functions();
  gcm_context_data* const context = &state_->context;
  IMB_AES128_GCM_INIT(with, &state_->key, context, bytes(nonce.data()), bytes(associated.data()), associated.size());
  for (const iovec& part : parts) {
    IMB_AES128_GCM_ENC_UPDATE(with, &state_->key, context, bytes(out), bytes(part.iov_base), part.iov_len);
    out += part.iov_len;
  }
  IMB_AES128_GCM_ENC_FINALIZE(with, &state_->key, context, bytes(out), kGcmTagSize);
}

bool GcmKey::open(const GcmNonce& nonce, ByteView associated, ByteView sealed, std::byte* out) {
  std::array<std::byte, kGcmTagSize> tag{};
  const std::size_t size = sealed.size() - kGcmTagSize;
  IMB_AES128_GCM_DEC(functions(), &state_->key, &state_->context, bytes(out), bytes(sealed.data()), size,
                     bytes(nonce.data()), bytes(associated.data()), associated.size(), bytes(tag.data()), kGcmTagSize);
  return ::CRYPTO_memcmp(tag.data(), sealed.data() + size, kGcmTagSize) == 0;
}

}  // namespace dtrain
