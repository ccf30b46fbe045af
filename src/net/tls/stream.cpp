#include <dtrain/net/stream.hpp>

#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <dtrain/base/error.hpp>

#include "bulk.hpp"
#include "context.hpp"
#include "socket_moves.hpp"

namespace dtrain::net {
namespace {

// Bytes that are encrypted before the kernel gets them in one call.
constexpr std::size_t kBatch = 20 << 10;
constexpr std::size_t kRecord = SSL3_RT_MAX_PLAIN_LENGTH;
// Room that one SSL_write may need: a full record with its frame, and a key update before it.
constexpr std::size_t kRoom = kRecord + 512;

using BioHandle = std::unique_ptr<BIO, Releaser<::BIO_free>>;

// Of one direction of the records that follow the handshake.
std::string bulk_secret(SSL* ssl, std::string_view label) {
  std::string secret(32, '\0');
  if (SSL_export_keying_material(ssl, reinterpret_cast<unsigned char*>(secret.data()), secret.size(), label.data(),
                                 label.size(), nullptr, 0, 0) != 1) {
    throw RemoteError("the connection has no keys: " + explain_tls_error());
  }
  return secret;
}

}  // namespace

// Reading goes from the socket straight into OpenSSL. Writing goes by way of a pair of memory BIOs, so that many
// records leave in one system call, and OpenSSL never has to be called again with the same bytes.
struct Stream::Tls {
  PreSharedKey psk;
  SslHandle ssl;
  BioHandle encrypted;  // the far end of the pair
  const std::uint64_t records_of_one_key;
  std::uint64_t records = 0;

  Tls(int socket, Role role, const StreamKey& key, const StreamLimits& limits)
      : psk(derive_key(key)), ssl(make_ssl(role, psk)), records_of_one_key(limits.records_of_one_key) {
    BIO *near = nullptr, *far = nullptr;
    BIO* input = BIO_new_socket(socket, BIO_NOCLOSE);
    if (input == nullptr || BIO_new_bio_pair(&near, kBatch, &far, 1) != 1) {
      BIO_free(input);
      throw Error("cannot begin a TLS connection: " + explain_tls_error());
    }
    SSL_set_bio(ssl.get(), input, near);
    SSL_set_mode(ssl.get(), SSL_MODE_RELEASE_BUFFERS);
    encrypted.reset(far);
  }

  std::size_t room() const { return BIO_ctrl_get_write_guarantee(SSL_get_wbio(ssl.get())); }

  // Returns the bytes taken; 0 if OpenSSL refuses, since room() is checked before.
  std::size_t write_record(const std::byte* data, std::size_t size) {
    if (++records % records_of_one_key == 0) SSL_key_update(ssl.get(), SSL_KEY_UPDATE_NOT_REQUESTED);
    std::size_t taken = 0;
    ERR_clear_error();
    SSL_write_ex(ssl.get(), data, std::min(size, kRecord), &taken);
    return taken;
  }

  Moved::State state_after(int result) const {
    switch (SSL_get_error(ssl.get(), result)) {
      case SSL_ERROR_NONE:
        return Moved::State::open;
      case SSL_ERROR_WANT_READ:
      case SSL_ERROR_WANT_WRITE:
        return errno == EINTR ? Moved::State::open : Moved::State::blocked;
      case SSL_ERROR_ZERO_RETURN:
        return Moved::State::ended;
      default:
        return errno == ECONNRESET ? Moved::State::ended : Moved::State::broken;
    }
  }
};

Stream::Stream() = default;
Stream::~Stream() = default;
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&&) noexcept = default;

Stream::Stream(FileDescriptor socket) : socket_(std::move(socket)) {}

Stream::Stream(FileDescriptor socket, Role role, const StreamKey& key, const StreamLimits& limits)
    : socket_(std::move(socket)), tls_(std::make_unique<Tls>(socket_.get(), role, key, limits)) {
  ::fcntl(socket_.get(), F_SETFL, ::fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
}

Stream::Handshake Stream::shake_hands() {
  DTRAIN_CHECK(tls_ != nullptr, "a handshake of a plain stream");
  SSL* ssl = tls_->ssl.get();
  ERR_clear_error();
  errno = 0;
  const int result = SSL_do_handshake(ssl);
  const int saved = errno;
  const int wants = SSL_get_error(ssl, result);
  const bool failed = result != 1 && wants != SSL_ERROR_WANT_READ && wants != SSL_ERROR_WANT_WRITE;
  std::string reason;
  if (failed) {
    if (ERR_peek_last_error() != 0) {
      reason = explain_tls_error();
    } else if (saved == 0 || saved == ECONNRESET) {
      reason = "the peer closed the connection before it proved the job's token";
    } else {
      reason = std::string("the connection broke during the handshake: ") + std::strerror(saved);
    }
  }
  const Moved sent = flush();  // also the alert that tells the peer why
  if (failed) throw RemoteError(reason);
  if (sent.state == Moved::State::broken) {
    throw RemoteError("the connection broke during the handshake: " + sent.error);
  }
  if (unsent() > 0) return Handshake::wants_write;
  if (result != 1) return Handshake::wants_read;
  if (SSL_session_reused(ssl) != 1) throw RemoteError("the peer did not prove the job's token");
  return Handshake::done;
}

bool Stream::has_answered() const { return tls_ && BIO_number_written(SSL_get_wbio(tls_->ssl.get())) > 0; }

void Stream::continue_plain() {
  DTRAIN_CHECK(tls_ != nullptr && unsent() == 0 && SSL_pending(tls_->ssl.get()) == 0, "bytes are under way");
  tls_.reset();
}

void Stream::continue_in_bulk() {
  DTRAIN_CHECK(tls_ != nullptr && unsent() == 0 && SSL_pending(tls_->ssl.get()) == 0, "bytes are under way");
  SSL* const ssl = tls_->ssl.get();
  const std::uint64_t records = tls_->records_of_one_key;
  BulkKeys to_accepted(bulk_secret(ssl, "EXPORTER-dtrain-bulk to the accepting end"), records);
  BulkKeys to_connected(bulk_secret(ssl, "EXPORTER-dtrain-bulk to the connecting end"), records);
  const bool accepts = SSL_is_server(ssl) == 1;
  bulk_ = accepts ? std::make_unique<BulkRecords>(std::move(to_connected), std::move(to_accepted))
                  : std::make_unique<BulkRecords>(std::move(to_accepted), std::move(to_connected));
  tls_.reset();
}

Moved Stream::read(std::span<const iovec> parts) {
  if (bulk_) return bulk_->read(socket_.get(), parts);
  if (!tls_) return read_from(socket_.get(), parts);
  SSL* ssl = tls_->ssl.get();
  Moved moved;
  for (const iovec& part : parts) {
    for (std::size_t done = 0; done < part.iov_len;) {
      std::size_t got = 0;
      ERR_clear_error();
      errno = 0;
      const int result = SSL_read_ex(ssl, static_cast<std::byte*>(part.iov_base) + done, part.iov_len - done, &got);
      if (result != 1) {
        moved.state = tls_->state_after(result);
        if (moved.state == Moved::State::broken) {
          moved.error = errno != 0 ? std::strerror(errno) : explain_tls_error();
        }
        return moved;
      }
      done += got;
      moved.bytes += got;
    }
  }
  return moved;
}

Moved Stream::write(std::span<const iovec> parts) {
  if (bulk_) return bulk_->write(socket_.get(), parts);
  if (!tls_) return write_to(socket_.get(), parts);
  std::size_t taken = 0;
  for (const iovec& part : parts) {
    const auto* data = static_cast<const std::byte*>(part.iov_base);
    for (std::size_t done = 0; done < part.iov_len;) {
      if (tls_->room() < kRoom) {
        Moved moved = flush();
        if (moved.state == Moved::State::broken || tls_->room() < kRoom) {
          moved.bytes = taken;
          return moved;
        }
      }
      const std::size_t now = tls_->write_record(data + done, part.iov_len - done);
      if (now == 0) return {.bytes = taken, .state = Moved::State::broken, .error = explain_tls_error()};
      done += now;
      taken += now;
    }
  }
  Moved moved = flush();
  moved.bytes = taken;
  return moved;
}

Moved Stream::flush() {
  if (bulk_) return bulk_->flush(socket_.get());
  if (!tls_) return {};
  for (;;) {
    char* bytes = nullptr;
    const int size = BIO_nread0(tls_->encrypted.get(), &bytes);
    if (size <= 0) return {};
    const iovec rest{bytes, static_cast<std::size_t>(size)};
    const Moved moved = write_to(socket_.get(), {&rest, 1});
    if (moved.bytes > 0) BIO_nread(tls_->encrypted.get(), &bytes, static_cast<int>(moved.bytes));
    if (moved.state != Moved::State::open) return moved;
  }
}

std::size_t Stream::unsent() const {
  if (bulk_) return bulk_->unsent();
  return tls_ ? BIO_ctrl_pending(tls_->encrypted.get()) : 0;
}
bool Stream::is_encrypted() const { return tls_ || bulk_; }

void Stream::end_writing() { ::shutdown(socket_.get(), SHUT_WR); }

}  // namespace dtrain::net
