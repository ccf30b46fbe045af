#include <dtrain/cluster/up_lease.hpp>

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/regions.hpp>

namespace dtrain::cluster {
namespace {

constexpr std::size_t kShortDigest = 12;

std::string short_digest(const std::string& text) { return sha256_hex(bytes_of(text)).substr(0, kShortDigest); }

// Whether the process runs although /proc does not show it, as with hidepid, where users see only their own processes.
bool is_hidden(std::int64_t process) {
  return process_identity(process).empty() && ::kill(static_cast<pid_t>(process), 0) != 0 && errno == EPERM;
}

Lease lease_of_up(const Fleet& fleet) {
  if (!fleet.group) return {};
  const auto found = fleet.group->tags.find(tag::kUp);
  return found == fleet.group->tags.end() ? Lease() : lease_from(found->second);
}

}  // namespace

std::string up_holder(std::int64_t process) {
  return fmt::format("{}.{}.{}", process, short_digest(process_namespace()), short_digest(process_identity(process)));
}

bool has_holder_ended(const std::string& holder) {
  const std::vector<std::string> parts = split(holder, '.');
  if (parts.size() != 3 || parts[1] != short_digest(process_namespace())) return false;
  const auto process = parse_integer(parts[0]);
  return process && up_holder(*process) != holder && !is_hidden(*process);
}

std::optional<Lease> lease_of_other_up(const Fleet& fleet, const std::string& me, UnixTime now) {
  Lease lease = lease_of_up(fleet);
  if (lease.holder.empty() || lease.holder == me || has_holder_ended(lease.holder)) return std::nullopt;
  // One of a time to come was written by a wrong clock, and would hold for as long as that is off.
  if (now - lease.at >= kUpLeaseTime || lease.at - now > kUpLeaseTime) return std::nullopt;
  return lease;
}

void refuse_other_up(const Fleet& fleet, const std::string& region, const std::string& me, UnixTime now) {
  const std::optional<Lease> other = lease_of_other_up(fleet, me, now);
  if (!other) return;
  throw UsageError(
      fmt::format("another `up` makes cluster {} in {}: its last sign of life is {} s old", fleet.name, region,
                  std::max<std::int64_t>((now - other->at).count(), 0)),
      fmt::format("wait until it ends. If it was killed on another machine, the same command works {} min after that "
                  "sign of life, and dtrain cluster down {} setting 'region' {} removes what it made",
                  kUpLeaseTime.count(), fleet.name, region));
}

UpLease::UpLease(std::function<UnixTime()> clock, Write write, std::function<void(const std::string&)> say)
    : clock_(std::move(clock)), write_(std::move(write)), say_(std::move(say)), me_(up_holder(::getpid())) {}

Tags UpLease::begin() {
  written_at_ = clock_();
  return {{tag::kUp, lease_text({me_, *written_at_})}};
}

void UpLease::write() {
  const auto before = written_at_;
  const Tags tags = begin();
  const auto problem = attempt([&] { write_(tags); });
  if (!problem) return;
  say_(problem->what());
  written_at_ = before;
}

void UpLease::take_free(const Fleet& fleet) {
  if (!lease_of_other_up(fleet, me_, clock_())) write();
}

bool UpLease::take(const std::function<Fleet()>& read, const std::string& region, const std::function<void()>& pause) {
  const Fleet before = read();
  if (!before.group) return true;  // the other one has given up
  if (!is_only_begun(before)) return false;
  refuse_other_up(before, region, me_, clock_());
  write();
  pause();
  try {
    refuse_other_up(read(), region, me_, clock_());
  } catch (const UsageError&) {
    forget();
    throw;
  }
  return true;
}

void UpLease::renew() {
  if (written_at_ && clock_() - *written_at_ >= kRenewAfter) write();
}

void UpLease::forget() { written_at_.reset(); }

}  // namespace dtrain::cluster
