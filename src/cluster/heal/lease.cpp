#include "lease.hpp"

#include <algorithm>

#include "aws/resources.hpp"
#include "aws/wait.hpp"

namespace dtrain::cluster {
namespace {

// Between writing the lease and reading it again: who wrote last acts.
constexpr std::chrono::seconds kUntilWritten{2};

}  // namespace

void write_lease(net::AwsCalls& aws, const Fleet& fleet, const std::string& holder, UnixTime now, Tags tags) {
  tags[tag::kHealer] = lease_text({holder, now});
  set_tags(aws, {fleet.group->id}, tags);
}

void claim_lease(const AwsContext& context, Fleet& fleet, const std::string& holder,
                 const std::function<UnixTime()>& clock, const std::function<Fleet()>& read) {
  write_lease(context.aws, fleet, holder, clock());
  pause_for(kUntilWritten);
  look_until(std::min<std::chrono::milliseconds>(kUntilVisible, context.patience), [&] {
    fleet = read();
    return lease_state(tagged_lease(fleet), holder, clock()) != LeaseState::free;
  });
}

}  // namespace dtrain::cluster
