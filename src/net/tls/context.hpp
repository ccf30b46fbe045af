// OpenSSL's side of a Stream: one context for the process, a session object for each connection.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include <dtrain/base/releaser.hpp>
#include <dtrain/net/stream.hpp>

namespace dtrain::net {

using SslHandle = std::unique_ptr<SSL, Releaser<::SSL_free>>;

// The key and the name under which both ends look it up.
struct PreSharedKey {
  std::string identity;  // travels in clear
  std::string key;       // 32 bytes
};
PreSharedKey derive_key(const StreamKey& key);

// `psk` must outlive the handle. It accepts the pre-shared key alone: no certificate, no resumption, TLS 1.3 only.
SslHandle make_ssl(Role role, const PreSharedKey& psk);

// Why the last call of this thread failed, for a reader.
std::string explain_tls_error();

}  // namespace dtrain::net
