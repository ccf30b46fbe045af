// All runs below the folders that the board watches. One thread looks at the files, others ask for what was found.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/base/mutex.hpp>

#include "run.hpp"

namespace dtrain::board {

class Catalog {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `roots` as of open_files(). A folder that is not there, or vanishes, is looked for again.
  Catalog(const std::vector<std::string>& roots, const std::shared_ptr<net::ObjectStore>& store);

  struct Change {
    std::vector<Json> rows;         // of runs that are new or have changed
    std::vector<std::string> gone;  // ids
    std::size_t bytes = 0;          // of lines that were read
    bool empty() const { return rows.empty() && gone.empty(); }
  };
  // One round over the files, which takes up what was written since the last one. Ends early where `stopped`.
  Change look(Time now, const std::function<bool()>& stopped);
  // Why a root or a run could not be read in the last round, once each time that it begins.
  std::vector<std::string> take_complaints();

  // Any thread. A run counts from the first time that its files were read: before that, nothing is known of it.
  Json rows() const;
  // Calls use(run) with the run, which must not be kept. False: there is none of that id.
  bool with_run(const std::string& id, const std::function<void(const Run&)>& use) const;
  // Until when the run goes on, seconds since 1970: `now`, or the time of its last record where it is silent.
  double end_of(const std::string& id, double now) const;
  std::vector<std::string> ids() const;
  // The root below which the run was found, as of open_files(); empty: there is no run of that id.
  std::string root_of(const std::string& id) const;

 private:
  struct Entry {
    std::unique_ptr<Run> run;
    std::string root{};
    std::string name{};        // below its root
    std::string whole_name{};  // with the name of its root, as the user gave it
    Files* files = nullptr;
    Time hot_until{};  // looked at in each round until then
    bool held = false;
    bool known = false;  // its files were read once
    std::string state{}, trouble{};
  };
  struct Root {
    std::string name;
    Path top;  // absolute, because the working folder may vanish; empty for s3://
    std::unique_ptr<Files> files;
    Time next{};
    std::string trouble{};
  };

  void find_runs(Root& root, Time now, Change& change);
  // Adds the trouble to complaints_ where it is another one than before.
  void complain(std::string& before, const std::string& trouble);
  void add_found(Root& root, const std::vector<std::string>& folders);
  void tell_apart(Change& change);
  void read(Entry& entry, Time now, Change& change, const std::function<bool()>& stopped);
  std::string name_of(const Root& root, const std::string& folder) const;

  // Of the thread that looks.
  std::vector<Root> roots_;
  std::vector<std::string> complaints_;
  std::size_t round_ = 0;

  mutable Mutex mutex_;
  // By id. The thread that looks is the only one that changes it, and reads it without the mutex.
  std::map<std::string, Entry> entries_;
};

}  // namespace dtrain::board
