// Loads core into Pyodide under node and runs scripts/pyodide_check.py there, offline.
//   node scripts/pyodide_check.mjs PYODIDE_FOLDER WHEEL...
// What it proves: core needs the standard library, msgspec and snowballstemmer, and nothing of an operating
// system: no sockets, no threads, no numpy, no files but its own source.
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const [pyodide, ...wheels] = process.argv.slice(2).map((each) => path.resolve(each));
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const { loadPyodide } = await import(pathToFileURL(path.join(pyodide, "pyodide.mjs")).href);

const py = await loadPyodide({ indexURL: pyodide });
for (const wheel of wheels) {
  py.unpackArchive(new Uint8Array(fs.readFileSync(wheel)), "whl"); // a Buffer is not a typed array to it
}
py.FS.mkdirTree("/noema/core");
py.mountNodeFS("/noema/core", path.join(root, "core"));
py.runPython(`
import runpy, sys
sys.dont_write_bytecode = True
sys.path.insert(0, "/noema")
`);
py.FS.writeFile("/noema/check.py", fs.readFileSync(path.join(root, "scripts", "pyodide_check.py")));
py.FS.writeFile("/noema/kip_fixtures.py", fs.readFileSync(path.join(root, "functions", "cli", "fixtures.py")));
const fixtures = path.join(root, "..", "shared", "kip", "fixtures");
if (fs.existsSync(fixtures)) {
  py.FS.mkdirTree("/noema/fixtures");
  py.mountNodeFS("/noema/fixtures", fixtures);
}
try {
  py.runPython(`runpy.run_path("/noema/check.py", run_name="__main__")`);
} catch (error) {
  console.error(error.message); // the Python traceback; node would print Pyodide's own source around it
  process.exit(1);
}
