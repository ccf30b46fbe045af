#include "handshake_steps.hpp"

#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/base/secret.hpp>

namespace dtrain::net {
namespace {

constexpr std::string_view kMagic{"dtrain\0\1", 8};  // the last byte is the version
constexpr std::size_t kNonceSize = 32;
constexpr std::size_t kHeaderSize = kMagic.size() + kNonceSize + 2;
constexpr std::size_t kProofSize = 32;

std::string make_opening(std::string_view hello) {
  std::string opening(kMagic);
  opening += unpredictable_bytes(kNonceSize);
  opening += static_cast<char>(hello.size() & 0xff);
  opening += static_cast<char>(hello.size() >> 8);
  opening += hello;
  return opening;
}

std::size_t hello_size(std::string_view header) {
  const auto low = static_cast<unsigned char>(header[kHeaderSize - 2]);
  const auto high = static_cast<unsigned char>(header[kHeaderSize - 1]);
  return std::size_t{low} | std::size_t{high} << 8;
}

}  // namespace

Handshake::Handshake(Role role, std::string_view secret, std::string_view hello)
    : role_(role), secret_(secret), opening_(), wanted_(kHeaderSize) {
  if (secret.empty()) throw UsageError("the shared secret of a connection is empty");
  if (hello.size() > kMaxHello) throw UsageError("what a connection says of itself is longer than 4 KiB");
  opening_ = make_opening(hello);
  if (role == Role::connected) output_ = opening_;
}

std::string Handshake::take_output() { return std::exchange(output_, {}); }

void Handshake::receive(std::string_view bytes) {
  DTRAIN_CHECK(wanted_ > 0 && bytes.size() == wanted_, "a handshake was fed other bytes than it asked for");
  switch (expect_) {
    case Expect::header:
      return receive_header(bytes);
    case Expect::hello:
      return receive_hello(bytes);
    case Expect::proof:
      return receive_proof(bytes);
  }
}

void Handshake::receive_header(std::string_view header) {
  const bool ours = header.substr(0, kMagic.size() - 1) == kMagic.substr(0, kMagic.size() - 1);
  if (!ours) throw RemoteError("the peer does not speak dtrain's protocol");
  if (header[kMagic.size() - 1] != kMagic.back()) {
    throw RemoteError("the peer speaks another version of dtrain's protocol", "use the same dtrain on every host");
  }
  const std::size_t size = hello_size(header);
  if (size > kMaxHello) throw RemoteError("the peer says too much of itself before it proved anything");
  peer_opening_ = header;
  expect_ = Expect::hello;
  wanted_ = size;
  if (size == 0) receive_hello({});
}

void Handshake::receive_hello(std::string_view hello) {
  peer_hello_ = hello;
  peer_opening_ += hello;
  output_ = role_ == Role::connected ? proof_of(role_) : opening_;
  expect_ = Expect::proof;
  wanted_ = kProofSize;
}

void Handshake::receive_proof(std::string_view proof) {
  const Role peer = role_ == Role::connected ? Role::accepted : Role::connected;
  if (!equal_secrets(proof, proof_of(peer))) {
    throw RemoteError("the peer does not know the job's token", "it belongs to another job, or to none");
  }
  if (role_ == Role::accepted) output_ = proof_of(role_);
  wanted_ = 0;
}

std::string Handshake::proof_of(Role role) const {
  const bool connected = role_ == Role::connected;
  std::string message = "dtrain proof";
  message += role == Role::connected ? 'C' : 'A';
  message += connected ? opening_ : peer_opening_;
  message += connected ? peer_opening_ : opening_;
  return hmac_sha256(secret_, message);
}

}  // namespace dtrain::net
