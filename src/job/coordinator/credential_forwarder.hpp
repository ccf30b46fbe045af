// Forwards the coordinator's AWS credentials to workers that read s3://. One thread resolves them, and again before
// they expire; the result passes under mutex_ to the coordinator's thread, which sends new credentials to all workers
// over the connections that proved the job's token. Credentials are never written to the environment or a file. If they
// cannot be resolved, empty credentials are sent once, and resolving is retried. The destructor stops and joins the
// thread; a source that blocks delays it.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <thread>

#include <dtrain/base/mutex.hpp>
#include <dtrain/elastic/agent_pool.hpp>
#include <dtrain/net/aws.hpp>

namespace dtrain::job {

class CredentialForwarder {
 public:
  // Resolves at once and then every `interval`, in a thread, because sources may be slow.
  explicit CredentialForwarder(net::AwsSettings settings,
                               std::chrono::milliseconds interval = std::chrono::seconds(30));
  ~CredentialForwarder() = default;

  // The remaining members are called from the coordinator's thread. A worker is known from its Hello, or from an
  // earlier coordinator.
  void hear(const elastic::AgentPoolEvent& event);
  void inherit(const std::vector<elastic::HostReport>& hosts);
  // Sends what a worker does not have yet; called regularly.
  void send_news(elastic::AgentPool& agent_pool);

 private:
  void resolve(const std::stop_token& stop);
  void publish(elastic::UpdateCredentials message);

  net::AwsIdentity identity_;
  std::chrono::milliseconds interval_;
  Mutex mutex_;
  std::optional<elastic::UpdateCredentials> newest_ DTRAIN_GUARDED_BY(mutex_);  // nullopt: not resolved yet
  bool changed_ DTRAIN_GUARDED_BY(mutex_) = false;
  std::set<elastic::WorkerId> receivers_, waiting_;
  std::jthread resolver_;
};

// Variables by which other machines find the same buckets, for the environment of a job over ssh. No secrets.
std::vector<std::string> far_environment(const net::AwsSettings& settings);

}  // namespace dtrain::job
