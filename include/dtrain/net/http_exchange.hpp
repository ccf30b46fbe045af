// One short HTTP request and its whole answer, for services that answer at once.
#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace dtrain::net {

struct HttpCall {
  std::string url{};  // http or https
  std::string method = "GET";
  std::vector<std::string> headers{};         // "Name: value"
  std::chrono::milliseconds deadline{1'000};  // for the whole exchange
  std::string body{};
  bool stop_on_signal = false;  // SIGINT and SIGTERM end it: Stopped is thrown
  bool direct = false;          // past any proxy, for addresses that only this machine or its network reaches
  // A file of trusted certificates, as aws_ca_bundle(); nullopt: the AWS profile does not count for this server.
  std::optional<std::string> ca_bundle{};
};
struct [[nodiscard]] HttpAnswer {
  long status = 0;
  std::string body;  // at most 1 MiB
};

// Blocks. Redirects are not followed. Throws RemoteError when no whole answer came in time, or
// `cancel` was asked for.
HttpAnswer exchange_http(const HttpCall& request, const std::stop_token& cancel = {});

}  // namespace dtrain::net
