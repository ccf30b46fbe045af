// What follows a TLS handshake on connections that move gigabytes: records that are encrypted from where the bytes lie,
// and decrypted to where they belong, by the fastest AES-GCM at hand.
//
//   record     u32 size of the text, little-endian | text, encrypted | tag of 16 bytes
//   cipher     AES-128-GCM; the four bytes of the size are its associated data
//   nonce      as in TLS 1.3 (RFC 8446 5.3): the direction's IV, xor the number of the record under this key
//   keys       of each direction from its secret, which both ends export from the handshake (RFC 8446 7.5). After
//              2^22 records the secret is replaced by a hash of it, and the key and IV follow.
//
// A record that was changed, left out, repeated or exchanged for another has a wrong tag.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/net/stream.hpp>

#include <dtrain/base/gcm.hpp>

namespace dtrain::net {

// One direction's secret, and what follows from it.
class BulkKeys {
 public:
  BulkKeys(std::string secret, std::uint64_t records_of_one_key);
  struct Next {
    GcmKey& key;
    GcmNonce nonce;
  };
  Next next();  // of the next record

 private:
  std::string secret_;
  const std::uint64_t records_of_one_key_;
  std::uint64_t records_ = 0;  // of this key
  std::optional<GcmKey> key_;
  GcmNonce iv_{};
};

// One thread at a time.
class BulkRecords {
 public:
  static constexpr std::size_t kLargest = 16 << 10;  // bytes of a record's text

  BulkRecords(BulkKeys own, BulkKeys theirs) : own_(std::move(own)), theirs_(std::move(theirs)) {}

  // The same contracts as in Stream.
  Moved read(int socket, std::span<const iovec> parts);
  Moved write(int socket, std::span<const iovec> parts);
  Moved flush(int socket);
  std::size_t unsent() const { return out_.size() - out_sent_; }

 private:
  std::size_t seal(std::span<const iovec> parts);
  bool open_next(std::span<std::byte> room);
  std::optional<Moved> fill(int socket);

  BulkKeys own_, theirs_;
  std::vector<std::byte> out_;  // a record that is being sent
  std::size_t out_sent_ = 0;
  std::vector<std::byte> in_;  // a record that is arriving
  std::size_t in_size_ = 0;
  std::vector<std::byte> opened_;  // text for which no reader has come
  std::size_t opened_read_ = 0;
  bool is_broken_ = false;  // a record was changed: nothing that follows it is read
};

}  // namespace dtrain::net
