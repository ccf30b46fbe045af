// The handshake without a socket: what to send, how many bytes to read next, and whether they prove the secret. Both
// the blocking and the asynchronous side drive this, so they cannot differ.
//
//   opening = "dtrain" 0 1 | nonce[32] | size of hello, u16 little-endian | hello
//   proof   = HMAC-SHA-256(secret, "dtrain proof" | role | opening of the connected side | opening of the accepted
//   side)
//
//   connected -> opening            a stranger who connects gets no byte before it sent a whole opening,
//   accepted  -> opening            and no proof before its own was right
//   connected -> proof
//   accepted  -> proof
#pragma once

#include <string>
#include <string_view>

#include <dtrain/net/handshake.hpp>

namespace dtrain::net {

constexpr std::size_t kMaxHello = 4096;

class Handshake {
 public:
  // UsageError when the secret is empty or the hello is too long.
  Handshake(Role role, std::string_view secret, std::string_view hello);

  // Bytes to send before anything else happens; empty when there are none.
  std::string take_output();
  // Bytes to read next, and exactly so many; 0: the peer has proved the secret.
  std::size_t wanted() const { return wanted_; }
  // Throws RemoteError for what is no handshake of this version, or the wrong proof.
  void receive(std::string_view bytes);
  const std::string& peer_hello() const { return peer_hello_; }

 private:
  enum class Expect { header, hello, proof };
  void receive_header(std::string_view header);
  void receive_hello(std::string_view hello);
  void receive_proof(std::string_view proof);
  std::string proof_of(Role role) const;

  Role role_;
  std::string secret_;
  std::string opening_, peer_opening_, peer_hello_, output_;
  Expect expect_ = Expect::header;
  std::size_t wanted_ = 0;
};

}  // namespace dtrain::net
