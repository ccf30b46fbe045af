// Where libraries of NVIDIA are looked for: pure, tested on folders made up by the test.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <dtrain/backend/cuda.hpp>
#include <dtrain/base/files.hpp>

namespace dtrain::backend::cuda {

struct Version {
  int major = 0, minor = 0, patch = 0;
  friend auto operator<=>(const Version&, const Version&) = default;
  std::string text() const;
};

// What a library must be.
struct LibraryWanted {
  std::string name;   // for people
  std::string file;   // "libcudnn.so.9"
  std::string wheel;  // its folder in NVIDIA's Python wheels, "cudnn"
  Version at_least;   // of the same major version
  std::string hint;   // how to get it
};

struct SearchPlaces {
  std::string own;     // DTRAIN_CUDA_PATH: folders with ':' between them
  std::string loader;  // LD_LIBRARY_PATH, likewise
  std::vector<std::string> usual{"/usr/local/cuda/lib64",     "/usr/local/cuda/lib", "/opt/cuda/lib64",
                                 "/usr/lib/x86_64-linux-gnu", "/usr/lib64",          "/usr/lib"};
};
SearchPlaces places_of_environment();

// In the order in which they are tried, none twice: what a person named, the loader's, the usual ones. A folder that a
// person named may be the library's, one that holds lib64 or lib, or a site-packages (or its nvidia/) with wheels.
std::vector<std::string> search_folders(const SearchPlaces& places, const LibraryWanted& wanted);

// What a file says of itself; nullopt with `problem` set where it cannot be loaded or is something else.
struct Probe {
  std::optional<Version> version;
  std::string problem;
};
using ProbeFile = Probe (*)(const Path& file);

// The first file of the folders that is of the wanted version; else the problem names what was found.
CudaLibrary find_library(const LibraryWanted& wanted, const std::vector<std::string>& folders, ProbeFile probe);

}  // namespace dtrain::backend::cuda
