# What comes from the distribution. A missing one names the package to install.
function(dtrain_missing what debian fedora)
  message(FATAL_ERROR "dtrain needs ${what}: install ${debian} (Debian, Ubuntu) or ${fedora} (Fedora), "
                      "or run packaging/install-deps.sh, where the distribution has it.")
endfunction()

find_package(fmt QUIET)
if(NOT TARGET fmt::fmt)
  dtrain_missing("fmt" libfmt-dev fmt-devel)
endif()

find_path(DTRAIN_JSON_INCLUDE nlohmann/json.hpp)
if(NOT DTRAIN_JSON_INCLUDE)
  dtrain_missing("nlohmann/json" nlohmann-json3-dev json-devel)
endif()

find_path(DTRAIN_XXHASH_INCLUDE xxhash.h)
if(NOT DTRAIN_XXHASH_INCLUDE)
  dtrain_missing("xxHash" libxxhash-dev xxhash-devel)
endif()

find_path(DTRAIN_CLI11_INCLUDE CLI/CLI.hpp)
if(NOT DTRAIN_CLI11_INCLUDE)
  dtrain_missing("CLI11" libcli11-dev cli11-devel)
endif()

find_path(DTRAIN_TOML_INCLUDE toml++/toml.h)
if(NOT DTRAIN_TOML_INCLUDE)
  dtrain_missing("toml++" libtomlplusplus-dev tomlplusplus-devel)
endif()

find_path(DTRAIN_ASIO_INCLUDE asio/io_context.hpp)
if(NOT DTRAIN_ASIO_INCLUDE)
  dtrain_missing("asio" libasio-dev asio-devel)
endif()
add_library(asio INTERFACE)
target_include_directories(asio SYSTEM INTERFACE ${DTRAIN_ASIO_INCLUDE})
target_compile_definitions(asio INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED)
if(DTRAIN_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  target_compile_options(asio INTERFACE -Wno-tsan)  # GCC warns of every fence; asio's locks do without them
endif()

find_package(Threads REQUIRED)

find_package(OpenSSL QUIET)
if(NOT TARGET OpenSSL::Crypto)
  dtrain_missing("OpenSSL" libssl-dev openssl-devel)
endif()

find_package(CURL QUIET)
if(NOT TARGET CURL::libcurl)
  dtrain_missing("libcurl" libcurl4-openssl-dev libcurl-devel)
endif()

find_package(ZLIB QUIET)
if(NOT TARGET ZLIB::ZLIB)
  dtrain_missing("zlib" zlib1g-dev zlib-devel)
endif()

find_package(PkgConfig QUIET)
if(NOT PKG_CONFIG_FOUND)
  dtrain_missing("pkg-config" pkg-config pkgconf-pkg-config)
endif()
function(dtrain_pkg target module debian fedora)
  pkg_check_modules(${target} QUIET IMPORTED_TARGET ${module})
  if(NOT ${target}_FOUND)
    dtrain_missing("${module}" ${debian} ${fedora})
  endif()
  set_target_properties(PkgConfig::${target} PROPERTIES IMPORTED_GLOBAL TRUE)
endfunction()
dtrain_pkg(pugixml pugixml libpugixml-dev pugixml-devel)
dtrain_pkg(zstd libzstd libzstd-dev libzstd-devel)
dtrain_pkg(libssh libssh libssh-dev libssh-devel)
dtrain_pkg(jpeg libjpeg libjpeg-dev libjpeg-turbo-devel)
dtrain_pkg(spng spng libspng-dev libspng-devel)
dtrain_pkg(webp libwebp libwebp-dev libwebp-devel)
dtrain_pkg(freetype freetype2 libfreetype-dev freetype-devel)

# oneDNN 2.6 (Debian 12) or 3.x; DTRAIN_ONEDNN_ROOT points at another copy. Found by hand: Debian's config package
# asks for OpenCL headers that nothing of ours needs.
find_path(DTRAIN_ONEDNN_INCLUDE oneapi/dnnl/dnnl.hpp HINTS ${DTRAIN_ONEDNN_ROOT}/include)
find_library(DTRAIN_ONEDNN_LIBRARY NAMES dnnl libdnnl.so.3 libdnnl.so.2 HINTS ${DTRAIN_ONEDNN_ROOT}/lib)
if(NOT DTRAIN_ONEDNN_INCLUDE OR NOT DTRAIN_ONEDNN_LIBRARY)
  dtrain_missing("oneDNN" libdnnl-dev onednn-devel)
endif()
add_library(DNNL::dnnl UNKNOWN IMPORTED)
set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION ${DTRAIN_ONEDNN_LIBRARY}
                      INTERFACE_INCLUDE_DIRECTORIES ${DTRAIN_ONEDNN_INCLUDE})

# Its config package: the target is plain `gloo`.
find_package(Gloo QUIET)
if(NOT TARGET gloo)
  dtrain_missing("Gloo" libgloo-dev gloo-devel)
endif()

# One shard is computed by one thread: oneDNN's own threads are limited per thread through OpenMP.
find_package(OpenMP QUIET COMPONENTS CXX)
if(NOT TARGET OpenMP::OpenMP_CXX)
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    dtrain_missing("OpenMP" libomp-dev libomp-devel)
  endif()
  dtrain_missing("OpenMP" g++ gcc-c++)
endif()

if(DTRAIN_TESTS)
  find_package(GTest QUIET)
  if(NOT TARGET GTest::gtest_main)
    dtrain_missing("GoogleTest" libgtest-dev gtest-devel)
  endif()
endif()
