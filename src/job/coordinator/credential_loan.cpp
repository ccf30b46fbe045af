#include "credential_loan.hpp"

#include <utility>

#include <dtrain/base/error.hpp>

namespace dtrain::job {

CredentialLoan::CredentialLoan(net::AwsSettings settings, std::chrono::milliseconds interval)
    : identity_(std::move(settings)),
      interval_(interval),
      resolver_([this](const std::stop_token& stop) { resolve(stop); }) {}

// A coordinator without credentials lends none: its workers may have their own.
void CredentialLoan::resolve(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    elastic::Lend loan;
    try {
      loan.credentials = net::credentials_text(identity_.credentials());
    } catch (const Error&) {
      loan.credentials.clear();
    }
    std::unique_lock lock(mutex_);
    const bool is_news = !newest_ || (!loan.credentials.empty() && newest_->credentials != loan.credentials);
    if (is_news) newest_ = std::move(loan);
    changed_ = changed_ || is_news;
    stopping_.wait_for(lock, stop, interval_, [] { return false; });
  }
}

void CredentialLoan::hear(const elastic::CrewEvent& event) {
  if (const auto* says = std::get_if<elastic::WorkerSays>(&event)) {
    if (std::holds_alternative<elastic::Hello>(says->message)) waiting_.insert(says->worker);
  } else if (const auto* exited = std::get_if<elastic::WorkerExited>(&event)) {
    borrowers_.erase(exited->worker);
    waiting_.erase(exited->worker);
  }
}

void CredentialLoan::inherit(const std::vector<elastic::HostReport>& hosts) {
  for (const elastic::HostReport& host : hosts) {
    for (const elastic::WorkerReport& worker : host.workers) waiting_.insert(worker.worker);
  }
}

void CredentialLoan::send_news(elastic::Crew& crew) {
  std::unique_lock lock(mutex_);
  if (!newest_) return;
  const elastic::Lend loan = *newest_;
  if (std::exchange(changed_, false)) waiting_.insert(borrowers_.begin(), borrowers_.end());
  lock.unlock();
  if (waiting_.empty()) return;
  crew.send_all({waiting_.begin(), waiting_.end()}, loan);
  borrowers_.insert(waiting_.begin(), waiting_.end());
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
    // the workers will say that no region is known
  }
  return variables;
}

}  // namespace dtrain::job
