#include <dtrain/net/instance_metadata.hpp>

#include <fmt/format.h>

#include <utility>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>

namespace dtrain::net {
namespace {

constexpr long kOk = 200, kUnauthorized = 401;

}  // namespace

InstanceMetadata::InstanceMetadata(Options options) : options_(std::move(options)) {
  while (options_.url.ends_with('/')) options_.url.pop_back();
}

std::optional<std::string> InstanceMetadata::find(const std::string& path, const std::stop_token& cancel) {
  HttpAnswer answer = ask(path, cancel);
  return answer.status == kOk ? std::optional(std::move(answer.body)) : std::nullopt;
}

std::string InstanceMetadata::get(const std::string& path, const std::stop_token& cancel) {
  HttpAnswer answer = ask(path, cancel);
  if (answer.status == kOk) return std::move(answer.body);
  throw RemoteError(fmt::format("{}/latest/{}: status {}", options_.url, path, answer.status));
}

HttpAnswer InstanceMetadata::ask(const std::string& path, const std::stop_token& cancel) {
  HttpCall call{.deadline = options_.deadline, .stop_on_signal = options_.stop_on_signal, .direct = true};
  if (token_.empty()) {
    call.url = options_.url + "/latest/api/token";
    call.method = "PUT";
    call.headers = {"X-aws-ec2-metadata-token-ttl-seconds: 21600"};
    HttpAnswer answer = exchange_http(call, cancel);
    if (answer.status != kOk) throw RemoteError(fmt::format("{}: status {}", call.url, answer.status));
    token_ = std::move(answer.body);
  }
  call.url = options_.url + "/latest/" + path;
  call.method = "GET";
  call.headers = {"X-aws-ec2-metadata-token: " + token_};
  HttpAnswer answer = exchange_http(call, cancel);
  if (answer.status == kUnauthorized) token_.clear();
  return answer;
}

std::string instance_metadata_url() {
  const std::string chosen = environment("AWS_EC2_METADATA_SERVICE_ENDPOINT").value_or("");
  return chosen.empty() ? kInstanceMetadataUrl : chosen;
}

}  // namespace dtrain::net
