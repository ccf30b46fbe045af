#include <algorithm>

#include <dtrain/base/stop.hpp>
#include <dtrain/elastic/membership.hpp>

namespace dtrain::elastic {
namespace {

constexpr std::uint64_t kStopPlease = 1;

class FixedMembership final : public Membership {
 public:
  explicit FixedMembership(std::unique_ptr<comm::Communicator> communicator) : communicator_(std::move(communicator)) {}

  void probed(const std::string&) override {}
  Entry enter(const TrainingPosition&) override {
    if (stopped_) return {.kind = Entry::Kind::checkpoint, .generation = 0, .communicator = nullptr, .reason = {}};
    DTRAIN_CHECK(communicator_, "a fixed membership is entered once");
    return {.kind = Entry::Kind::train, .generation = 0, .communicator = std::move(communicator_), .reason = {}};
  }
  void entered(const TrainingPosition&) override {}

  std::uint64_t vote() override { return stop_signal() == 0 ? 0 : kStopPlease; }
  // One rank's signal is enough, because the others may never get one.
  Verdict judge(std::span<const std::uint64_t> votes, bool) override {
    const bool stop = std::any_of(votes.begin(), votes.end(), [](std::uint64_t vote) { return vote == kStopPlease; });
    return stop ? Verdict::stop : Verdict::go_on;
  }

  void require_generation() override {}
  void begin_apply() override {}
  void end_apply(const TrainingPosition&) override {}
  void lost(const PeerLost& error) override {
    stopped_ = stop_signal() != 0;
    if (!stopped_) throw error;
  }
  void progress(Phase) override {}
  void computes(double) override {}
  void report(const Json&) override {}

 private:
  std::unique_ptr<comm::Communicator> communicator_;
  bool stopped_ = false;  // by a signal, which could not wait for the end of the step
};

}  // namespace

std::unique_ptr<Membership> make_fixed_membership(std::unique_ptr<comm::Communicator> communicator) {
  return std::make_unique<FixedMembership>(std::move(communicator));
}

}  // namespace dtrain::elastic
