// The coordinator's side of workers that read s3:// with its credentials: it resolves them, again before they expire,
// and what is new is sent to all workers, over the connections that proved the job's token. Neither the environment nor
// a file ever holds them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include <dtrain/elastic/crew.hpp>
#include <dtrain/net/aws.hpp>

namespace dtrain::job {

class CredentialLoan {
 public:
  // Sources may be slow: they are asked in a thread, at once and then every `interval`.
  explicit CredentialLoan(net::AwsSettings settings, std::chrono::milliseconds interval = std::chrono::seconds(30));
  ~CredentialLoan() = default;

  // The rest from the coordinator's thread. A worker said that it is there, or is known from an earlier coordinator.
  void hear(const elastic::CrewEvent& event);
  void inherit(const std::vector<elastic::HostReport>& hosts);
  // Sends what a worker does not have yet; call now and then.
  void send_news(elastic::Crew& crew);

 private:
  void resolve(const std::stop_token& stop);

  net::AwsIdentity identity_;
  std::chrono::milliseconds interval_;
  std::mutex mutex_;
  std::condition_variable_any stopping_;
  std::optional<elastic::Lend> newest_;  // guarded by mutex_; nullopt: not resolved yet
  bool changed_ = false;                 // guarded by mutex_
  std::set<elastic::WorkerId> borrowers_, waiting_;
  std::jthread resolver_;
};

// What other machines must be told to find the same buckets, for the environment of a job over ssh. No secrets.
std::vector<std::string> far_environment(const net::AwsSettings& settings);

}  // namespace dtrain::job
