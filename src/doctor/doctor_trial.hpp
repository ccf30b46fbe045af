// A trial of the shared folder: every host writes, links and locks there, and looks for what the others wrote. All of
// it is below one folder that no job uses, and is removed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain::doctor {

class FolderTrial {
 public:
  // `folder` empty: there is none, and nothing is done. `mark` names this trial; `number` this host.
  FolderTrial(const Path& folder, const std::string& mark, int number);

  struct Written {
    std::string error;
    bool made_link = false;  // then this one holds the lock
  };
  Written write();

  struct Seen {
    std::vector<int> numbers;          // whose file is there with the right content
    std::optional<bool> lock_is_kept;  // nullopt: it could not be tried
  };
  Seen look(int hosts) const;

  void clean_up();

 private:
  std::string content(int number) const;
  Path file(int number) const;

  Path folder_;  // of the trial
  std::string mark_;
  int number_;
  FileDescriptor lock_;
};

}  // namespace dtrain::doctor
