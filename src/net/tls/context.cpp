#include "context.hpp"

#include <openssl/err.h>

#include <cstring>
#include <string_view>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>

namespace dtrain::net {
namespace {

constexpr unsigned char kSuite[2] = {0x13, 0x01};  // TLS_AES_128_GCM_SHA256
constexpr const char* kSuiteName = "TLS_AES_128_GCM_SHA256";

using SessionHandle = std::unique_ptr<SSL_SESSION, Releaser<::SSL_SESSION_free>>;
using ContextHandle = std::unique_ptr<SSL_CTX, Releaser<::SSL_CTX_free>>;

const PreSharedKey& key_of(const SSL* ssl) { return *static_cast<const PreSharedKey*>(SSL_get_app_data(ssl)); }

// An external key looks to OpenSSL like a session that is resumed (RFC 8446 4.2.11).
SessionHandle session_of(SSL* ssl) {
  SessionHandle session(SSL_SESSION_new());
  const PreSharedKey& psk = key_of(ssl);
  const SSL_CIPHER* cipher = SSL_CIPHER_find(ssl, kSuite);
  const bool made = session && cipher != nullptr &&
                    SSL_SESSION_set1_master_key(session.get(), reinterpret_cast<const unsigned char*>(psk.key.data()),
                                                psk.key.size()) == 1 &&
                    SSL_SESSION_set_cipher(session.get(), cipher) == 1 &&
                    SSL_SESSION_set_protocol_version(session.get(), TLS1_3_VERSION) == 1;
  return made ? std::move(session) : nullptr;
}

int offer_key(SSL* ssl, const EVP_MD* wanted, const unsigned char** identity, std::size_t* size,
              SSL_SESSION** session) {
  *session = nullptr;
  *identity = nullptr;
  *size = 0;
  if (wanted != nullptr && !EVP_MD_is_a(wanted, "SHA256")) return 1;  // offers nothing
  const std::string& name = key_of(ssl).identity;
  *identity = reinterpret_cast<const unsigned char*>(name.data());
  *size = name.size();
  *session = session_of(ssl).release();
  return *session != nullptr;
}

int find_key(SSL* ssl, const unsigned char* identity, std::size_t size, SSL_SESSION** session) {
  const std::string_view wanted(reinterpret_cast<const char*>(identity), size);
  *session = wanted == key_of(ssl).identity ? session_of(ssl).release() : nullptr;
  return 1;
}

ContextHandle make_context() {
  ContextHandle context(SSL_CTX_new(TLS_method()));
  const bool made = context && SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) == 1 &&
                    SSL_CTX_set_ciphersuites(context.get(), kSuiteName) == 1 &&
                    SSL_CTX_set1_groups_list(context.get(), "X25519") == 1 &&
                    SSL_CTX_set_num_tickets(context.get(), 0) == 1;
  if (!made) throw Error("OpenSSL cannot do TLS 1.3 here: " + explain_tls_error());
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_clear_options(context.get(), SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_psk_use_session_callback(context.get(), offer_key);
  SSL_CTX_set_psk_find_session_callback(context.get(), find_key);
  return context;
}

}  // namespace

PreSharedKey derive_key(const StreamKey& key) {
  if (key.secret.empty()) throw UsageError("the shared secret of a connection is empty");
  return {.identity = "dtrain 2 " + key.purpose, .key = hmac_sha256(key.secret, "dtrain TLS key for " + key.purpose)};
}

SslHandle make_ssl(Role role, const PreSharedKey& psk) {
  static const ContextHandle context = make_context();
  SslHandle ssl(SSL_new(context.get()));
  if (!ssl) throw Error("cannot begin a TLS connection: " + explain_tls_error());
  SSL_set_app_data(ssl.get(), const_cast<PreSharedKey*>(&psk));
  if (role == Role::connected) {
    SSL_set_connect_state(ssl.get());
    SSL_set_verify(ssl.get(), SSL_VERIFY_PEER, nullptr);  // a certificate is never enough: none is trusted
  } else {
    SSL_set_accept_state(ssl.get());
  }
  return ssl;
}

std::string explain_tls_error() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  switch (ERR_GET_REASON(code)) {
    case SSL_R_BINDER_DOES_NOT_VERIFY:
      return "the peer does not know the job's token";
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
    case SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER:  // what OpenSSL says of a wrong binder
      return "the peer knows another token: it belongs to another job";
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
    case SSL_R_NO_SHARED_CIPHER:
      return "the peer is another kind of port, or another version of dtrain";
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_UNSUPPORTED_PROTOCOL:
      return "the peer does not speak dtrain's protocol (TLS 1.3 with the job's token)";
    case SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC:
      return "bytes were changed on the way";
    default:
      break;
  }
  const char* reason = ERR_reason_error_string(code);
  return reason == nullptr ? "the connection broke" : std::string("TLS: ") + reason;
}

}  // namespace dtrain::net
