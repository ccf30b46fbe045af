#include "credential_forwarder.hpp"

#include <utility>

#include <dtrain/base/error.hpp>

namespace dtrain::job {

CredentialForwarder::CredentialForwarder(net::AwsSettings settings, std::chrono::milliseconds interval)
    : identity_(std::move(settings)),
      interval_(interval),
      resolver_([this](const std::stop_token& stop) { resolve(stop); }) {}

// A coordinator without credentials sends none: its workers may have their own.
void CredentialForwarder::resolve(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    elastic::UpdateCredentials message;
    try {
      message.credentials = net::credentials_text(identity_.credentials());
    } catch (const Error&) {
      message.credentials.clear();
    }
    publish(std::move(message));
    sleep_unless_stopped(stop, interval_);
  }
}

void CredentialForwarder::publish(elastic::UpdateCredentials message) {
  const MutexLock lock(mutex_);
  const bool is_news = !newest_ || (!message.credentials.empty() && newest_->credentials != message.credentials);
  if (is_news) newest_ = std::move(message);
  changed_ = changed_ || is_news;
}

void CredentialForwarder::hear(const elastic::AgentPoolEvent& event) {
  if (const auto* says = std::get_if<elastic::WorkerSays>(&event)) {
    if (std::holds_alternative<elastic::Hello>(says->message)) waiting_.insert(says->worker);
  } else if (const auto* exited = std::get_if<elastic::WorkerExited>(&event)) {
    receivers_.erase(exited->worker);
    waiting_.erase(exited->worker);
  }
}

void CredentialForwarder::inherit(const std::vector<elastic::HostReport>& hosts) {
  for (const elastic::HostReport& host : hosts) {
    for (const elastic::WorkerReport& worker : host.workers) waiting_.insert(worker.worker);
  }
}

void CredentialForwarder::send_news(elastic::AgentPool& agent_pool) {
  MutexLock lock(mutex_);
  if (!newest_) return;
  const elastic::UpdateCredentials message = *newest_;
  if (std::exchange(changed_, false)) waiting_.insert(receivers_.begin(), receivers_.end());
  lock.unlock();
  if (waiting_.empty()) return;
  agent_pool.send_all({waiting_.begin(), waiting_.end()}, message);
  receivers_.insert(waiting_.begin(), waiting_.end());
  waiting_.clear();
}

std::vector<std::string> far_environment(const net::AwsSettings& settings) {
  std::vector<std::string> variables;
  try {
    const std::string region = net::aws_region(settings);
    variables.push_back("AWS_REGION=" + region);
    const net::AwsEndpoint endpoint = net::aws_endpoint(net::kS3, region, settings);
    if (endpoint.custom) variables.push_back("AWS_ENDPOINT_URL_S3=" + endpoint.url);
  } catch (const UsageError&) {
    // the workers will report that no region is known
  }
  return variables;
}

}  // namespace dtrain::job
