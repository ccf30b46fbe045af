// One HTTP exchange of any method, over connections that are kept and used again. No redirects, no retries: the callers
// decide about those.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include <dtrain/base/mutex.hpp>
#include <dtrain/net/aws.hpp>

namespace dtrain::net {

struct Exchange {
  std::string method = "GET";
  std::string url{};  // sent byte for byte
  std::vector<HttpField> headers{};
  ByteView body{};
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds whole_timeout{0};  // 0: only the stall limits it
  std::chrono::seconds stall_timeout{20};
  std::uint64_t slowest_rate = 1024;  // bytes a second, over stall_timeout
  bool follow_redirects = false;      // only for what carries no secret; never from https to http
  bool stop_on_signal = true;
  // Over a new connection: an old one that turns out to be closed makes libcurl send the request a second time.
  bool fresh = false;
  bool direct = false;      // past any proxy, for addresses that only this machine or its network reaches
  std::string ca_bundle{};  // a file of trusted certificates that the user chose; empty: the usual ones
  std::function<void(const AwsAnswer& head, ByteView piece)>
      sink{};                            // for the body of a 2xx answer; exceptions pass through
  std::size_t largest_body = 64u << 20;  // of an answer that no sink takes; a longer one is a failure
  std::stop_token cancel{};              // ends the exchange as a failure
};

// What a person can do about a certificate that is not trusted. `by_profile`: the AWS profile's ca_bundle counts there.
std::string trust_hint(bool by_profile);

struct [[nodiscard]] ExchangeResult {
  AwsAnswer answer;     // status 0: there was none
  std::string failure;  // empty: the exchange was complete, whatever the status
  bool timed_out = false;
  bool untrusted = false;  // no certificate that is trusted here: a further try changes nothing
  bool too_long = false;   // longer than largest_body; likewise
};

// Safe for concurrent use; each exchange holds one connection.
class HttpConnections {
 public:
  HttpConnections();
  ~HttpConnections();
  // Throws Stopped after SIGINT or SIGTERM (with stop_on_signal), or what the sink throws.
  ExchangeResult exchange(const Exchange& request);

 private:
  struct Handle;
  std::unique_ptr<Handle> take();
  void give_back(std::unique_ptr<Handle> handle);

  Mutex mutex_;
  std::vector<std::unique_ptr<Handle>> idle_ DTRAIN_GUARDED_BY(mutex_);
};

}  // namespace dtrain::net
