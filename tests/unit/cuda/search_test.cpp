// Where NVIDIA's libraries are found, on folders with libraries that the test compiles itself.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "common/temporary_folder.hpp"
#include "libraries/shared_object.hpp"

namespace dtrain::backend::cuda {
namespace {

const LibraryWanted kWanted = cudnn_wanted();

// A libcudnn.so.9 that answers as told.
void make_cudnn(const Path& folder, int version, int runtime = 13000, int parts = 0) {
  std::filesystem::create_directories(folder);
  const Path source = folder / "fake.c", file = folder / kWanted.file;
  std::ofstream(source) << "unsigned long cudnnGetVersion(void) { return " << version << "; }\n"
                        << "unsigned long cudnnGetCudartVersion(void) { return " << runtime << "; }\n"
                        << "int cudnnOpsVersionCheck(void) { return " << parts << "; }\n";
  const std::string command = "cc -shared -fPIC -o '" + file.string() + "' '" + source.string() + "'";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
}

CudaLibrary look(const std::vector<std::string>& folders) { return find_library(kWanted, folders, probe_cudnn); }

TEST(CudaSearch, TriesWhatAPersonNamedThenTheLoadersFoldersThenTheUsualOnes) {
  const SearchPlaces places{.own = "/a::/b", .loader = "/c:/usr/lib64", .usual = {"/usr/lib64", "/d"}};
  const std::vector<std::string> expected{
      "/a", "/a/lib64",   "/a/lib", "/a/nvidia/cudnn/lib", "/a/cudnn/lib", "/a/nvidia/cu13/lib", "/a/cu13/lib",
      "/b", "/b/lib64",   "/b/lib", "/b/nvidia/cudnn/lib", "/b/cudnn/lib", "/b/nvidia/cu13/lib", "/b/cu13/lib",
      "/c", "/usr/lib64", "/d"};
  EXPECT_EQ(search_folders(places, kWanted), expected);
}

TEST(CudaSearch, FindsTheLibraryOfNvidiasWheels) {
  const TemporaryFolder folder;
  make_cudnn(folder.path() / "nvidia/cudnn/lib", 91900);
  const CudaLibrary found = look(search_folders({.own = folder.path().string(), .loader = {}, .usual = {}}, kWanted));
  EXPECT_EQ(found.problem, "");
  EXPECT_EQ(found.version, "9.19.0");
  EXPECT_EQ(found.file, (folder.path() / "nvidia/cudnn/lib" / kWanted.file).string());
}

TEST(CudaSearch, GoesOnToTheNextFolderWhereAVersionIsTooOld) {
  const TemporaryFolder folder;
  make_cudnn(folder.path() / "old", 8907);
  make_cudnn(folder.path() / "new", 90100);
  const CudaLibrary found = look({(folder.path() / "old").string(), (folder.path() / "new").string()});
  EXPECT_EQ(found.version, "9.1.0");
}

std::string problem_of(int version, int runtime, int parts) {
  const TemporaryFolder folder;
  make_cudnn(folder.path(), version, runtime, parts);
  const CudaLibrary found = look({folder.path().string()});
  EXPECT_EQ(found.file, "");
  EXPECT_NE(found.hint, "");
  return found.problem;
}

TEST(CudaSearch, SaysWhatIsWrongWithALibrary) {
  EXPECT_NE(problem_of(8907, 13000, 0).find("is version 8.9.7, this dtrain needs 9.0.0"), std::string::npos);
  EXPECT_NE(problem_of(100000, 13000, 0).find("is version 10.0.0"), std::string::npos);
  EXPECT_NE(problem_of(91900, 12090, 0).find("is made for CUDA 12"), std::string::npos);
  EXPECT_NE(problem_of(91900, 13000, 5).find("the parts beside it are of another one"), std::string::npos);
}

TEST(CudaSearch, SaysThatAFileIsNoLibrary) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / kWanted.file) << "no library";
  EXPECT_NE(look({folder.path().string()}).problem.find("cannot be loaded"), std::string::npos);
}

TEST(CudaSearch, SaysThatALibraryIsMissing) {
  const TemporaryFolder folder;
  EXPECT_EQ(look({folder.path().string()}).problem, "cuDNN is missing: no libcudnn.so.9 was found");
}

// Every build answers; what there is depends on the machine.
TEST(CudaReport, GivesAReasonWhereNoGpuCanBeUsed) {
  const CudaReport report = look_for_cuda();
  EXPECT_EQ(report.problem.empty(), report.hint.empty());
  EXPECT_TRUE(!report.gpus.empty() || !report.problem.empty());
}

}  // namespace
}  // namespace dtrain::backend::cuda
