// What a program keeps in the job folder, beside the files that dtrain makes there.
#pragma once

#include <string>
#include <vector>

#include "job_folder.hpp"

namespace dtrain::job {

// What the folder of a job on one machine holds that dtrain does not make, as sorted paths in the folder. A folder that
// dtrain does not make, or that cannot be read, stands for all that is in it.
std::vector<std::string> files_of_program(const JobFolder& folder);

}  // namespace dtrain::job
