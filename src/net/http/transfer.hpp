// One try at one HTTP transfer, with what the server said about it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <dtrain/net/http.hpp>

namespace dtrain::net {

struct TransferRequest {
  const Download& download;
  std::uint64_t offset = 0;  // ask for the bytes from here on
  std::string validator;     // with offset: only if the file still has this ETag or date; empty: unconditionally
};

// What the server's headers said before the first byte came.
struct ResponseHead {
  long status = 0;  // 0 for file://
  // Position of the body's first byte: 0, or the offset that was asked for. nullopt: a part (status 206) whose position
  // the server does not say.
  std::optional<std::uint64_t> offset{};
  std::string content_type;
  std::string validator;  // strong ETag, else Last-Modified, else empty
};

struct [[nodiscard]] TransferResult {
  ResponseHead head;
  int curl_code = 0;    // CURLcode
  std::string message;  // curl's words when curl_code is not 0
  bool untrusted = false;
  std::chrono::seconds retry_after{0};
  std::uint64_t total = 0;  // size of the whole file as the server says; 0: it did not
  bool ok() const { return curl_code == 0; }
};

// Where the body goes. Exceptions pass through transfer().
struct BodySink {
  std::function<void(const ResponseHead&)> begin;  // called once, before the first write
  std::function<void(ByteView)> write;
};

// Follows redirects. The body of an error status is dropped. Throws Stopped, or what the sink throws.
TransferResult transfer(const TransferRequest& request, const BodySink& sink);
// Whether another try can help.
bool worth_retrying(const TransferResult& result);

}  // namespace dtrain::net
