#include "catalog.hpp"

#include <algorithm>
#include <set>

#include <dtrain/base/error.hpp>

#include "locks.hpp"

namespace dtrain::board {
namespace {

using namespace std::chrono_literals;
constexpr auto kHot = 30s;  // after a change
constexpr auto kFind = 2s, kFindFarAway = 5s;
constexpr int kFindShare = 50;          // finding takes at most so small a part of the time
constexpr std::size_t kColdRounds = 8;  // runs that rest are looked at once in so many rounds

Path top_of(const std::string& root) {
  if (net::is_s3_url(root)) return {};
  const Path whole = std::filesystem::absolute(root).lexically_normal();
  return whole.has_filename() ? whole : whole.parent_path();
}

std::string whole_name_of(std::string root, bool is_root, const std::string& name) {
  while (root.size() > 1 && root.ends_with('/')) root.pop_back();
  return is_root ? root : root + "/" + name;
}

// A folder that was not found may be one that could not be looked into.
bool is_gone(Files& files, const std::string& folder) {
  try {
    return !files.size(folder + "/events.jsonl") && !files.size(folder + "/steps.jsonl");
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

Catalog::Catalog(const std::vector<std::string>& roots, const std::shared_ptr<net::ObjectStore>& store) {
  for (const std::string& root : roots)
    roots_.push_back({.name = root, .top = top_of(root), .files = open_files(root, store)});
}

std::vector<std::string> Catalog::take_complaints() { return std::exchange(complaints_, {}); }

Catalog::Change Catalog::look(Time now, const std::function<bool()>& stopped) {
  Change change;
  ++round_;
  for (Root& root : roots_) {
    if (now >= root.next && !stopped()) find_runs(root, now, change);
  }
  const HeldLocks locks;
  std::size_t number = 0;
  for (auto& [id, entry] : entries_) {
    if (stopped()) break;
    if (entry.hot_until < now && number++ % kColdRounds != round_ % kColdRounds) continue;
    const bool held = entry.files->is_local() && locks.holds(entry.run->folder() + "/coordinator.lock");
    {
      const MutexLock lock(mutex_);
      entry.held = held;
    }
    if (held) entry.hot_until = now + kHot;
    read(entry, now, change, stopped);
  }
  return change;
}

void Catalog::find_runs(Root& root, Time now, Change& change) {
  FoundRuns found;
  try {
    found = root.files->find_runs();
    complain(root.trouble, found.complaint);
  } catch (const Error& error) {
    complain(root.trouble, error.what());
    root.next = now + kFindFarAway;
    return;  // what is known stays: a service that does not answer has not removed it
  }
  const auto took = std::chrono::steady_clock::now() - now;
  const auto pause = root.files->is_local() ? kFind : kFindFarAway;
  root.next = now + std::max<std::chrono::steady_clock::duration>(pause, took * kFindShare);
  add_found(root, found.folders);
  const std::set<std::string> folders(found.folders.begin(), found.folders.end());
  for (auto next = entries_.begin(); next != entries_.end();) {
    const std::string& folder = next->second.run->folder();
    if (next->second.files != root.files.get() || folders.contains(folder) || !is_gone(*root.files, folder)) {
      ++next;
      continue;
    }
    change.gone.push_back(next->first);
    const MutexLock lock(mutex_);
    next = entries_.erase(next);
  }
  tell_apart(change);
}

void Catalog::complain(std::string& before, const std::string& trouble) {
  if (!trouble.empty() && trouble != before) complaints_.push_back(trouble);
  before = trouble;
}

void Catalog::add_found(Root& root, const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    auto run = std::make_unique<Run>(folder, name_of(root, folder));
    if (entries_.contains(run->id())) continue;  // also below another root
    const std::string id = run->id(), name = run->name();
    const MutexLock lock(mutex_);
    entries_[id] = {.run = std::move(run),
                    .root = root.top.empty() ? root.name : root.top.string(),
                    .name = name,
                    .whole_name = whole_name_of(root.name, root.top == folder, name),
                    .files = root.files.get(),
                    .hot_until = Time::max()};
  }
}

// Runs that have one name below different roots get the names of their roots too.
void Catalog::tell_apart(Change& change) {
  if (roots_.size() < 2) return;
  std::map<std::string, std::set<const Files*>> bearers;
  for (const auto& [id, entry] : entries_) bearers[entry.name].insert(entry.files);
  for (auto& [id, entry] : entries_) {
    const std::string& name = bearers[entry.name].size() > 1 ? entry.whole_name : entry.name;
    if (entry.run->name() == name) continue;
    const MutexLock lock(mutex_);
    entry.run->rename(name);
    if (entry.known) change.rows.push_back(entry.run->row(wall_seconds(), entry.held));
  }
}

void Catalog::read(Entry& entry, Time now, Change& change, const std::function<bool()>& stopped) {
  const bool first = !entry.known;
  bool changed = first, more = true;  // a new one has a row in any case
  while (more && !stopped()) {
    Run::News news;
    try {
      news = entry.run->fetch(*entry.files);
      entry.trouble.clear();
    } catch (const Error& error) {
      complain(entry.trouble, error.what());
      break;
    }
    more = news.more();
    if (!news.any() && entry.known) continue;
    changed = true;
    change.bytes += news.steps.lines.size();
    const MutexLock lock(mutex_);
    entry.run->apply(std::move(news), first ? 0 : wall_seconds());
    entry.known = true;
  }
  if (!entry.known) {
    entry.hot_until = now;
    return;
  }
  const MutexLock lock(mutex_);
  const std::string state = entry.run->state(wall_seconds(), entry.held);
  const bool works = state == "training" || state == "preparing" || state == "waiting";
  if (changed) entry.hot_until = works ? now + kHot : now;
  if (!changed && state == entry.state) return;
  entry.state = state;
  change.rows.push_back(entry.run->row(wall_seconds(), entry.held));
}

// The path below the root, or the root's own name; without the suffix of folders beside checkpoints.
std::string Catalog::name_of(const Root& root, const std::string& folder) const {
  std::string name;
  if (net::is_s3_url(folder)) {
    name = folder.starts_with(root.name) && folder.size() > root.name.size() ? folder.substr(root.name.size()) : "";
    while (name.starts_with('/')) name.erase(0, 1);
    if (name.empty() || name == kRunSuffix) name = folder.substr(folder.rfind('/') + 1);
  } else {
    name = Path(folder).lexically_relative(root.top).string();
    if (name == "." || name.starts_with("..")) name = Path(folder).filename().string();
    // Jobs are often called job: the folder around it says more.
    if (name == "job") name = (Path(folder).parent_path().filename() / name).string();
  }
  return name.size() > kRunSuffix.size() && name.ends_with(kRunSuffix) ? name.substr(0, name.size() - kRunSuffix.size())
                                                                       : name;
}

Json Catalog::rows() const {
  const MutexLock lock(mutex_);
  Json rows = Json::array();
  for (const auto& [id, entry] : entries_) {
    if (entry.known) rows.push_back(entry.run->row(wall_seconds(), entry.held));
  }
  return rows;
}

bool Catalog::with_run(const std::string& id, const std::function<void(const Run&)>& use) const {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end() || !found->second.known) return false;
  use(*found->second.run);
  return true;
}

double Catalog::end_of(const std::string& id, double now) const {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  return found == entries_.end() ? now : found->second.run->end(now, found->second.held);
}

std::string Catalog::root_of(const std::string& id) const {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  return found == entries_.end() ? std::string() : found->second.root;
}

std::vector<std::string> Catalog::ids() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> ids;
  for (const auto& [id, entry] : entries_) {
    if (entry.known) ids.push_back(id);
  }
  return ids;
}

}  // namespace dtrain::board
