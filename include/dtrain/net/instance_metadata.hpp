// EC2's instance metadata service, version 2 (IMDSv2): a session token first, then every value with it.
#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>

#include <dtrain/net/http_exchange.hpp>

namespace dtrain::net {

inline constexpr const char* kInstanceMetadataUrl = "http://169.254.169.254";

// One thread at a time. Neither proxies nor redirects are followed.
class InstanceMetadata {
 public:
  struct Options {
    std::string url = kInstanceMetadataUrl;
    std::chrono::milliseconds deadline{1'000};  // for each request
    bool stop_on_signal = false;                // SIGINT and SIGTERM end a request: Stopped is thrown
  };
  explicit InstanceMetadata(Options options);

  // The value at this path below /latest/; nullopt: there is none. Throws RemoteError if the service does not answer
  // in time or gives no token. A token that has expired is renewed by the next call.
  std::optional<std::string> find(const std::string& path, const std::stop_token& cancel = {});
  // The same; throws RemoteError also if there is no value.
  std::string get(const std::string& path, const std::stop_token& cancel = {});

 private:
  HttpAnswer ask(const std::string& path, const std::stop_token& cancel);

  Options options_;
  std::string token_;
};

// What EC2 says about the end of an instance.
struct EndNotice {
  bool is_final = false;  // true: it ends within about two minutes; false: it is likely to end soon
  std::string text{};     // "spot notice: terminate at 2026-01-31T08:22:00Z", "rebalance recommended at ..."
  friend bool operator==(const EndNotice&, const EndNotice&) = default;
};
// nullopt: there is none. Throws as find(), and DataError for a notice that cannot be read.
std::optional<EndNotice> end_notice(InstanceMetadata& metadata, const std::stop_token& cancel = {});

// The URL of AWS_EC2_METADATA_SERVICE_ENDPOINT in the environment, or EC2's own.
std::string instance_metadata_url();

}  // namespace dtrain::net
